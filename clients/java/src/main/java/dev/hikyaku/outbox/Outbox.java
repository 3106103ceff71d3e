// SPDX-License-Identifier: Apache-2.0
package dev.hikyaku.outbox;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Writes messages into hikyaku's outbox on PostgreSQL, with JDBC and inside your own transaction. It needs nothing but java.sql.
 *
 * <pre>{@code
 * connection.setAutoCommit(false);
 * ...
 * Outbox.usual().enqueue(connection, Message.of("OrderCreated").destination("billing").text(json));
 * connection.commit();
 * }</pre>
 */
public final class Outbox {
    private static final Pattern WORD = Pattern.compile("[A-Za-z_][A-Za-z0-9_]{0,62}");
    private static final Map<String, String> TYPES =
        Map.of("not_before", "timestamptz", "expires_at", "timestamptz", "max_attempts", "integer");

    private final String table;

    private Outbox(String table) {
        this.table = table;
    }

    /** The table outbox, found along the search path. */
    public static Outbox usual() {
        return at(null, "");
    }

    /** The outbox of a schema, or with a prefix, as the relay's store URL names them. Null or "": none. */
    public static Outbox at(String schema, String prefix) {
        var before = prefix == null ? "" : prefix;
        check(schema == null ? "" : schema);
        check(before);
        return new Outbox((schema == null || schema.isEmpty() ? "" : '"' + schema + "\".") + '"' + before + "outbox\"");
    }

    private static void check(String name) {
        if (!name.isEmpty() && !WORD.matcher(name).matches())
            throw new IllegalArgumentException("schema and prefix have letters, digits and '_' only, not '" + name + "'");
    }

    /**
     * Writes the message in the connection's transaction, and returns its message id. It neither begins nor commits: the relay sends the message
     * if, and only if, your transaction commits.
     *
     * @throws IllegalArgumentException the message is wrong; nothing was asked of the database
     * @throws IllegalStateException    the connection commits by itself, so that the message would be in no transaction of yours
     */
    public String enqueue(Connection connection, Message message) throws SQLException {
        var columns = message.complete().columns();
        if (connection.getAutoCommit())
            throw new IllegalStateException("the connection is in auto-commit mode: call setAutoCommit(false) first");
        var names = String.join(", ", columns.keySet());
        var marks = columns.keySet().stream()
            .map(name -> "CAST(? AS " + TYPES.getOrDefault(name, "text") + ")").collect(Collectors.joining(", "));
        try (var insert = connection.prepareStatement("INSERT INTO " + table + " (" + names + ") VALUES (" + marks + ")")) {
            int at = 0;
            for (var value : columns.values())
                insert.setString(++at, value);
            insert.executeUpdate();
        }
        return columns.get("message_id");
    }
}
