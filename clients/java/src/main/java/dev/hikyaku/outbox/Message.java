// SPDX-License-Identifier: Apache-2.0
package dev.hikyaku.outbox;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.regex.Pattern;

/**
 * A message for the outbox. Only the event type is required; docs/outbox.md explains every member. It cannot be changed: each method returns
 * a new message.
 *
 * <pre>{@code
 * Message.of("OrderCreated").destination("billing").text("{\"orderId\":42}")
 * }</pre>
 */
public final class Message {
    private static final Pattern VISIBLE = Pattern.compile("[\\x21-\\x7e]{1,256}");
    private static final Pattern CONTROL = Pattern.compile("[\\x00-\\x1f\\x7f]");
    private static final Pattern SEALED =
        Pattern.compile("hk1\\.[A-Za-z0-9_-]{1,32}\\.[0-9a-f]{8}\\.[A-Za-z0-9+/]+={0,2}");
    private static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSSX").withZone(ZoneOffset.UTC);

    /** What is written, by the names of outbox's columns, in their order. */
    private final Map<String, String> columns;

    private Message(Map<String, String> columns) {
        this.columns = columns;
    }

    /** A message of this event type. */
    public static Message of(String eventType) {
        if (eventType == null || eventType.isEmpty())
            throw new IllegalArgumentException("event_type is empty");
        return new Message(new LinkedHashMap<>()).with("event_type", eventType);
    }

    private Message with(String column, String value) {
        if (value.indexOf('\0') >= 0)
            throw new IllegalArgumentException(column + " has a NUL character");
        var copy = new LinkedHashMap<>(columns);
        copy.put(column, value);
        return new Message(copy);
    }

    private Message payload(String column, String value, String encoding) {
        if (columns.containsKey("payload"))
            throw new IllegalArgumentException("a message has one payload: text, bytes or sealed");
        var message = with("payload", Objects.requireNonNull(value, column));
        return encoding == null ? message : message.with("encoding", encoding);
    }

    /** What the receiver gets, as it is. */
    public Message text(String payload) {
        return payload("payload", payload, null);
    }

    /** What the receiver gets, byte for byte. It is stored as base64, which the relay decodes. */
    public Message bytes(byte[] payload) {
        return payload("payload", Base64.getEncoder().encodeToString(payload), "base64");
    }

    /** A payload that you have sealed already (docs/sealed-format.md). It needs the message id that it was sealed with. */
    public Message sealed(String payload) {
        if (!SEALED.matcher(payload).matches())
            throw new IllegalArgumentException("sealed is the text hk1.KEY-ID.CHECK.BODY");
        return payload("sealed", payload, "sealed");
    }

    /** Where it goes; without, the relay's routes choose. */
    public Message destination(String name) {
        return with("destination", name);
    }

    /** 1 to 256 visible ASCII characters; without, a new UUID. */
    public Message id(String messageId) {
        if (!VISIBLE.matcher(messageId).matches())
            throw new IllegalArgumentException("message_id has 1 to 256 visible ASCII characters");
        return with("message_id", messageId);
    }

    /** Messages of one key keep their order within a destination. */
    public Message key(String messageKey) {
        return with("message_key", messageKey);
    }

    /** More request headers. */
    public Message headers(Map<String, String> headers) {
        var json = new StringBuilder("{");
        headers.forEach((name, value) -> {
            if (name.isEmpty() || CONTROL.matcher(name + value).find())
                throw new IllegalArgumentException("headers have names, and texts without control characters");
            json.append(json.length() > 1 ? "," : "").append(quoted(name)).append(':').append(quoted(value));
        });
        return with("headers", json.append('}').toString());
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"'; // there are no control characters
    }

    /** The request's Content-Type; without, application/json. */
    public Message contentType(String type) {
        return with("content_type", type);
    }

    /** To follow the message in other systems. */
    public Message correlationId(String id) {
        return with("correlation_id", id);
    }

    /** W3C trace context of your transaction. */
    public Message traceparent(String traceparent) {
        return with("traceparent", traceparent);
    }

    /** Sent as Idempotency-Key; without, the message id. */
    public Message idempotencyKey(String key) {
        return with("idempotency_key", key);
    }

    /** The relay sends it then at the earliest. */
    public Message notBefore(Instant at) {
        return with("not_before", TIME.format(at));
    }

    /** If it was not sent by then, it becomes a dead letter. */
    public Message expiresAt(Instant at) {
        return with("expires_at", TIME.format(at));
    }

    /** Name of a retry policy. */
    public Message policy(String name) {
        return with("policy", name);
    }

    /** How often the relay tries. 0: as the policy says. */
    public Message maxAttempts(int n) {
        if (n < 0)
            throw new IllegalArgumentException("max_attempts is not a count of attempts");
        return with("max_attempts", Integer.toString(n));
    }

    /** With an id, as it is written. */
    Message complete() {
        if (columns.containsKey("message_id"))
            return this;
        if ("sealed".equals(columns.get("encoding")))
            throw new IllegalArgumentException(
                "a sealed payload is bound to its message_id: give the one that it was sealed with");
        return with("message_id", UUID.randomUUID().toString());
    }

    Map<String, String> columns() {
        return columns;
    }

    @Override
    public String toString() { // no payload: it may hold what no log should
        int bytes = columns.getOrDefault("payload", "").getBytes(StandardCharsets.UTF_8).length;
        return "Message[" + columns.get("event_type") + ", " + bytes + " bytes]";
    }
}
