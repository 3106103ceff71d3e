// SPDX-License-Identifier: Apache-2.0

// Package contracttest runs the shared contract (clients/contract.json) with each driver. It is a module of its own, so that the package
// itself needs no driver. HIKYAKU_TEST_PG is a URL of a database with the schema of `hikyaku init`.
package contracttest

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	"hikyaku.dev/outbox"
)

type given struct {
	EventType      string            `json:"event_type"`
	Destination    string            `json:"destination"`
	Text           *string           `json:"text"`
	Base64         *string           `json:"base64"`
	Sealed         *string           `json:"sealed"`
	MessageID      *string           `json:"message_id"`
	MessageKey     string            `json:"message_key"`
	Headers        map[string]string `json:"headers"`
	ContentType    string            `json:"content_type"`
	CorrelationID  string            `json:"correlation_id"`
	Traceparent    string            `json:"traceparent"`
	IdempotencyKey string            `json:"idempotency_key"`
	NotBefore      time.Time         `json:"not_before"`
	ExpiresAt      time.Time         `json:"expires_at"`
	Policy         string            `json:"policy"`
	MaxAttempts    int               `json:"max_attempts"`
}

type contract struct {
	Select struct{ Postgres string }
	Cases  []struct {
		Name    string
		Message given
		Row     map[string]any
		Refused string
	}
}

var errUndo = errors.New("undo")

// A driver: `inside` runs the work in a transaction, which is rolled back when it fails.
type driver struct {
	name   string
	inside func(ctx context.Context, work func(put func(outbox.Message) (string, error)) error) error
}

func read(t *testing.T) contract {
	t.Helper()
	var c contract
	text, err := os.ReadFile("../../contract.json")
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (g given) message(t *testing.T, driver string) outbox.Message {
	t.Helper()
	m := outbox.Message{EventType: g.EventType, Destination: g.Destination, MessageKey: g.MessageKey, Headers: g.Headers, ContentType: g.ContentType,
		CorrelationID: g.CorrelationID, Traceparent: g.Traceparent, IdempotencyKey: g.IdempotencyKey, NotBefore: g.NotBefore, ExpiresAt: g.ExpiresAt,
		Policy: g.Policy, MaxAttempts: g.MaxAttempts}
	switch {
	case g.Sealed != nil:
		m.Payload = outbox.Sealed(*g.Sealed)
	case g.Base64 != nil:
		bytes, err := base64.StdEncoding.DecodeString(*g.Base64)
		if err != nil {
			t.Fatal(err)
		}
		m.Payload = outbox.Bytes(bytes)
	case g.Text != nil:
		m.Payload = outbox.Text(*g.Text)
	}
	if g.MessageID != nil {
		m.MessageID = driver + *g.MessageID // tests of several drivers share a table
	}
	return m
}

func withSQL(name, url string) driver {
	return driver{name, func(ctx context.Context, work func(func(outbox.Message) (string, error)) error) error {
		db, err := sql.Open(name, url)
		if err != nil {
			return err
		}
		defer db.Close()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after Commit
		if err := work(func(m outbox.Message) (string, error) { return outbox.Enqueue(ctx, tx, m) }); err != nil {
			return err
		}
		return tx.Commit()
	}}
}

func withPgx(url string) driver {
	return driver{"pgx.Tx", func(ctx context.Context, work func(func(outbox.Message) (string, error)) error) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			return work(func(m outbox.Message) (string, error) { return outbox.EnqueuePgx(ctx, tx, m) })
		})
	}}
}

func rows(t *testing.T, url, query, id string) []map[string]any {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	found, err := conn.Query(context.Background(), query, id)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	all := []map[string]any{}
	for _, text := range texts {
		row := map[string]any{}
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	return all
}

func TestContract(t *testing.T) {
	url := os.Getenv("HIKYAKU_TEST_PG")
	// lib/pq asks for TLS unless it is told otherwise.
	for _, d := range []driver{withSQL("postgres", url+"?sslmode=disable"), withSQL("pgx", url), withPgx(url)} {
		t.Run(d.name, func(t *testing.T) {
			c := read(t)
			for _, one := range c.Cases {
				t.Run(one.Name, func(t *testing.T) {
					if one.Message.Text != nil && one.Message.Sealed != nil || one.Message.MessageID != nil && *one.Message.MessageID == "" {
						t.Skip("Go's types cannot say this: a message has one payload, and an empty MessageID is none")
					}
					prefix := d.name + "-"
					if one.Refused != "" {
						prefix = ""
					}
					m := one.Message.message(t, prefix)
					var id string
					err := d.inside(context.Background(), func(put func(outbox.Message) (string, error)) (err error) {
						id, err = put(m)
						return err
					})
					if one.Refused != "" {
						if !errors.Is(err, outbox.ErrInvalid) || !strings.Contains(err.Error(), one.Refused) {
							t.Fatalf("%v, not %s", err, one.Refused)
						}
						return
					}
					if err != nil || id == "" || m.MessageID != "" && id != m.MessageID {
						t.Fatal(id, err)
					}
					if got := rows(t, url, c.Select.Postgres, id); !reflect.DeepEqual(got, []map[string]any{one.Row}) {
						t.Fatalf("%v\nnot %v", got, one.Row)
					}
				})
			}
			t.Run("a rollback leaves nothing", func(t *testing.T) {
				var id string
				err := d.inside(context.Background(), func(put func(outbox.Message) (string, error)) (err error) {
					if id, err = put(outbox.Message{EventType: "Never", Destination: "shop", Payload: outbox.Text("1")}); err != nil {
						return err
					}
					return errUndo
				})
				if !errors.Is(err, errUndo) || len(rows(t, url, c.Select.Postgres, id)) != 0 {
					t.Fatal(id, err)
				}
			})
			t.Run("ids are new, and a value becomes JSON", func(t *testing.T) {
				var a, b string
				err := d.inside(context.Background(), func(put func(outbox.Message) (string, error)) (err error) {
					m := outbox.Message{EventType: "Twice", Destination: "shop", Payload: outbox.JSON(map[string]int{"名": 1})}
					if a, err = put(m); err == nil {
						b, err = put(m)
					}
					return err
				})
				if err != nil || a == b || rows(t, url, c.Select.Postgres, a)[0]["payload"] != `{"名":1}` {
					t.Fatal(a, b, err)
				}
			})
		})
	}
}

func TestPlace(t *testing.T) {
	url := os.Getenv("HIKYAKU_TEST_PG")
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	m := outbox.Message{EventType: "Placed", Destination: "shop"}
	id, err := outbox.EnqueuePgxAt(ctx, conn, outbox.Place{Schema: "public"}, m)
	if err != nil || len(rows(t, url, read(t).Select.Postgres, id)) != 1 {
		t.Fatal(id, err)
	}
	if _, err := outbox.EnqueuePgxAt(ctx, conn, outbox.Place{Schema: `a"; DROP TABLE x --`}, m); !errors.Is(err, outbox.ErrInvalid) {
		t.Fatal(err)
	}
	if _, err := outbox.EnqueuePgx(ctx, conn, outbox.Message{EventType: "E", Payload: outbox.JSON(make(chan int))}); !errors.Is(err, outbox.ErrInvalid) {
		t.Fatal(err)
	}
}
