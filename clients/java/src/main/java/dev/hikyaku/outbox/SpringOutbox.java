// SPDX-License-Identifier: Apache-2.0
package dev.hikyaku.outbox;

import java.sql.SQLException;
import java.util.Objects;
import javax.sql.DataSource;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.support.SQLExceptionSubclassTranslator;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * The outbox in the transaction that Spring has begun: {@code @Transactional}, TransactionTemplate, or JPA on the same DataSource.
 *
 * <pre>{@code
 * @Transactional
 * public void createOrder(Order order) {
 *     orders.save(order);
 *     outbox.enqueue(Message.of("OrderCreated").destination("billing").text(json(order)));
 * }
 * }</pre>
 */
public final class SpringOutbox {
    private final DataSource dataSource;
    private final Outbox outbox;

    /** The table outbox, found along the search path. */
    public SpringOutbox(DataSource dataSource) {
        this(dataSource, Outbox.usual());
    }

    /** An outbox in a schema, or with a prefix. */
    public SpringOutbox(DataSource dataSource, Outbox outbox) {
        this.dataSource = Objects.requireNonNull(dataSource);
        this.outbox = Objects.requireNonNull(outbox);
    }

    /**
     * Writes the message, and returns its message id.
     *
     * @throws IllegalStateException there is no transaction: the message would not be committed with your change
     */
    public String enqueue(Message message) {
        if (!TransactionSynchronizationManager.isActualTransactionActive())
            throw new IllegalStateException("there is no transaction: is @Transactional missing?");
        var connection = DataSourceUtils.getConnection(dataSource);
        try {
            return outbox.enqueue(connection, message);
        } catch (SQLException e) {
            throw Objects.requireNonNull(new SQLExceptionSubclassTranslator().translate("write a message into outbox", null, e));
        } finally {
            DataSourceUtils.releaseConnection(connection, dataSource);
        }
    }
}
