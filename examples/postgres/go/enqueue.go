// SPDX-License-Identifier: Apache-2.0

// Go with database/sql: the business change and its message in one transaction. Usage: go run . URL
package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	_ "github.com/lib/pq"
)

func createOrder(db *sql.DB, item string, fail bool) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // unless committed: neither the order nor the message exists
	var order int64
	if err := tx.QueryRow("INSERT INTO orders (item) VALUES ($1) RETURNING id", item).Scan(&order); err != nil {
		return err
	}
	payload, err := json.Marshal(map[string]any{"order": order, "from": "go"})
	if err != nil {
		return err
	}
	if _, err := tx.Exec("INSERT INTO outbox (destination, event_type, message_key, payload) VALUES ($1, $2, $3, $4)",
		"shop", "OrderCreated", fmt.Sprintf("order-%d", order), string(payload)); err != nil {
		return err
	}
	if fail {
		return errors.New("the card was refused")
	}
	return tx.Commit()
}

func main() {
	db, err := sql.Open("postgres", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(
		"CREATE TABLE IF NOT EXISTS orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text)"); err != nil {
		log.Fatal(err)
	}
	if err := createOrder(db, "a parcel", false); err != nil {
		log.Fatal(err)
	}
	if err := createOrder(db, "a mistake", true); err == nil {
		log.Fatal("it should have been refused")
	}
}
