// SPDX-License-Identifier: Apache-2.0
package dev.hikyaku.outbox;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.net.URI;
import java.sql.Connection;
import java.sql.DriverManager;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** The shared contract (clients/contract.json). HIKYAKU_TEST_PG is a URL of a database with the schema of `hikyaku init`. */
class ContractTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final URI PG = URI.create(System.getenv("HIKYAKU_TEST_PG"));
    private static final String URL =
        "jdbc:postgresql://" + PG.getHost() + ":" + PG.getPort() + PG.getPath() + "?user=" + PG.getUserInfo();

    /** Runs the work in a transaction, which is rolled back when it throws. */
    interface Driver {
        String inside(Work work) throws Exception;
    }

    interface Work {
        String with(Function<Message, String> put) throws Exception;
    }

    static class Undo extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    static Connection connect() throws Exception {
        return DriverManager.getConnection(URL);
    }

    static String jdbc(Work work) throws Exception {
        try (var connection = connect()) {
            connection.setAutoCommit(false);
            try {
                var result = work.with(message -> {
                    try {
                        return Outbox.usual().enqueue(connection, message);
                    } catch (java.sql.SQLException e) {
                        throw new AssertionError(e);
                    }
                });
                connection.commit();
                return result;
            } catch (Exception e) {
                connection.rollback();
                throw e;
            }
        }
    }

    static DataSource dataSource() {
        var source = new PGSimpleDataSource();
        source.setUrl(URL);
        return source;
    }

    static String spring(Work work) {
        var source = dataSource();
        var outbox = new SpringOutbox(source);
        return new TransactionTemplate(new DataSourceTransactionManager(source)).execute(status -> {
            try {
                return work.with(outbox::enqueue);
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
    }

    static JsonNode contract() throws Exception {
        return JSON.readTree(new File("../contract.json"));
    }

    static List<JsonNode> rows(String id) throws Exception {
        var rows = new ArrayList<JsonNode>();
        var select = contract().at("/select/postgres").asText().replace("$1", "?");
        try (var connection = connect(); var query = connection.prepareStatement(select)) {
            query.setString(1, id);
            try (var found = query.executeQuery()) {
                while (found.next())
                    rows.add(JSON.readTree(found.getString(1)));
            }
        }
        return rows;
    }

    static Message message(JsonNode given, String prefix) {
        var message = Message.of(given.get("event_type").asText());
        for (var field : given.properties()) {
            var value = field.getValue().asText();
            message = switch (field.getKey()) {
                case "event_type" -> message;
                case "text" -> message.text(value);
                case "base64" -> message.bytes(Base64.getDecoder().decode(value));
                case "sealed" -> message.sealed(value);
                case "destination" -> message.destination(value);
                case "message_id" -> message.id(value.isEmpty() ? value : prefix + value);
                case "message_key" -> message.key(value);
                case "headers" -> {
                    var headers = new LinkedHashMap<String, String>();
                    field.getValue().properties().forEach(h -> headers.put(h.getKey(), h.getValue().asText()));
                    yield message.headers(headers);
                }
                case "content_type" -> message.contentType(value);
                case "correlation_id" -> message.correlationId(value);
                case "traceparent" -> message.traceparent(value);
                case "idempotency_key" -> message.idempotencyKey(value);
                case "not_before" -> message.notBefore(OffsetDateTime.parse(value).toInstant());
                case "expires_at" -> message.expiresAt(OffsetDateTime.parse(value).toInstant());
                case "policy" -> message.policy(value);
                case "max_attempts" -> message.maxAttempts(field.getValue().asInt());
                default -> throw new AssertionError(field.getKey());
            };
        }
        return message;
    }

    static void check(JsonNode one, String name, Driver driver) throws Exception {
        if (one.has("refused")) {
            var error = assertThrows(IllegalArgumentException.class,
                () -> driver.inside(put -> put.apply(message(one.get("message"), ""))));
            assertTrue(error.getMessage().contains(one.get("refused").asText()), error.getMessage());
            return;
        }
        var id = driver.inside(put -> put.apply(message(one.get("message"), name + "-")));
        if (one.at("/message/message_id").isTextual())
            assertEquals(name + "-" + one.at("/message/message_id").asText(), id);
        assertEquals(List.of(one.get("row")), rows(id));
    }

    static Stream<DynamicTest> tests(String name, Driver driver) throws Exception {
        var tests = new ArrayList<DynamicTest>();
        contract().get("cases").forEach(one -> tests.add(
            dynamicTest(name + ": " + one.get("name").asText(), () -> check(one, name, driver))));
        tests.add(dynamicTest(name + ": a rollback leaves nothing", () -> {
            var ids = new ArrayList<String>();
            assertThrows(Undo.class, () -> driver.inside(put -> {
                ids.add(put.apply(Message.of("Never").destination("shop").text("1")));
                throw new Undo();
            }));
            assertEquals(List.of(), rows(ids.get(0)));
        }));
        tests.add(dynamicTest(name + ": ids are new", () -> {
            var message = Message.of("Twice").destination("shop");
            var ids = new ArrayList<String>();
            driver.inside(put -> {
                ids.add(put.apply(message));
                ids.add(put.apply(message));
                return "";
            });
            assertNotEquals(ids.get(0), ids.get(1));
        }));
        return tests.stream();
    }

    @TestFactory
    Stream<DynamicTest> withJdbc() throws Exception {
        return tests("jdbc", ContractTest::jdbc);
    }

    @TestFactory
    Stream<DynamicTest> withSpring() throws Exception {
        return tests("spring", ContractTest::spring);
    }

    @Test
    void withoutTransactionNothingIsWritten() throws Exception {
        try (var connection = connect()) {
            assertThrows(IllegalStateException.class, () -> Outbox.usual().enqueue(connection, Message.of("Never")));
        }
        assertThrows(IllegalStateException.class, () -> new SpringOutbox(dataSource()).enqueue(Message.of("Never")));
    }

    @Test
    void schemaAndPrefix() throws Exception {
        assertThrows(IllegalArgumentException.class, () -> Outbox.at("a\"; DROP TABLE x --", ""));
        try (var connection = connect()) {
            connection.setAutoCommit(false);
            var id = Outbox.at("public", "").enqueue(connection, Message.of("Placed").destination("shop"));
            connection.commit();
            assertEquals(1, rows(id).size());
        }
        var source = dataSource();
        var nowhere = new SpringOutbox(source, Outbox.at("public", "nowhere_"));
        var template = new TransactionTemplate(new DataSourceTransactionManager(source));
        assertThrows(DataAccessException.class, () -> template.execute(status -> nowhere.enqueue(Message.of("E"))));
    }

    @Test
    void noPayloadInALog() {
        assertEquals("Message[E, 4 bytes]", Message.of("E").text("1234").toString());
    }
}
