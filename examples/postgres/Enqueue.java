// SPDX-License-Identifier: Apache-2.0
// Java with JDBC: the business change and its message in one transaction.
// Usage: java -cp /usr/share/java/postgresql.jar Enqueue.java jdbc:postgresql://HOST:PORT/DATABASE?user=NAME
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;

public class Enqueue {
    static void createOrder(Connection db, String item, boolean fail) throws SQLException {
        db.setAutoCommit(false);
        try (var order = db.prepareStatement("INSERT INTO orders (item) VALUES (?) RETURNING id");
             var message = db.prepareStatement(
                 "INSERT INTO outbox (destination, event_type, message_key, payload) VALUES (?, ?, ?, ?)")) {
            order.setString(1, item);
            var rows = order.executeQuery();
            rows.next();
            long id = rows.getLong(1);
            message.setString(1, "shop");
            message.setString(2, "OrderCreated");
            message.setString(3, "order-" + id);
            message.setString(4, "{\"order\":" + id + ",\"from\":\"java\"}");
            message.executeUpdate();
            if (fail)
                throw new SQLException("the card was refused");
            db.commit();
        } catch (SQLException e) {
            db.rollback(); // neither the order nor the message exists
            throw e;
        }
    }

    public static void main(String[] args) throws SQLException {
        try (var db = DriverManager.getConnection(args[0])) {
            db.createStatement().execute(
                "CREATE TABLE IF NOT EXISTS orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text)");
            createOrder(db, "a parcel", false);
            try {
                createOrder(db, "a mistake", true);
            } catch (SQLException expected) {
            }
        }
    }
}
