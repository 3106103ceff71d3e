// SPDX-License-Identifier: Apache-2.0

// Package outbox writes messages into hikyaku's outbox, inside your own transaction.
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	id, err := outbox.Enqueue(ctx, tx, outbox.Message{
//		EventType: "OrderCreated", Destination: "billing", Payload: outbox.Text(`{"orderId":42}`),
//	})
//
// It runs one INSERT. It neither begins nor commits: the relay sends the message if, and only if, your transaction commits.
// It imports no driver, and nothing but the standard library.
package outbox

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrInvalid is what every error about a message itself wraps: nothing was asked of the database.
var ErrInvalid = errors.New("invalid message")

// Payload is what the receiver gets: Text, Bytes, JSON or Sealed.
type Payload interface {
	stored() (text, encoding string, err error)
}

// Text goes out as it is.
type Text string

// Bytes go out as they are. They are stored as base64, which the relay decodes.
type Bytes []byte

// Sealed is a payload that you have sealed already (docs/sealed-format.md). It needs a MessageID.
type Sealed string

type jsonPayload struct{ value any }

// JSON marshals the value when the message is written.
func JSON(value any) Payload { return jsonPayload{value} }

var (
	visible = regexp.MustCompile(`^[\x21-\x7e]{1,256}$`)
	control = regexp.MustCompile(`[\x00-\x1f\x7f]`)
	word    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
	sealed  = regexp.MustCompile(`^hk1\.[A-Za-z0-9_-]{1,32}\.[0-9a-f]{8}\.[A-Za-z0-9+/]+={0,2}$`)
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

func checkText(name, text string) error {
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return invalid("%s is not a text of UTF-8 without NUL characters", name)
	}
	return nil
}

func (t Text) stored() (string, string, error) { return string(t), "", checkText("payload", string(t)) }

func (b Bytes) stored() (string, string, error) {
	return base64.StdEncoding.EncodeToString(b), "base64", nil
}

func (s Sealed) stored() (string, string, error) {
	if !sealed.MatchString(string(s)) {
		return "", "", invalid("sealed is the text hk1.KEY-ID.CHECK.BODY")
	}
	return string(s), "sealed", nil
}

func (j jsonPayload) stored() (string, string, error) {
	text, err := json.Marshal(j.value)
	if err != nil {
		return "", "", fmt.Errorf("%w: payload: %w", ErrInvalid, err)
	}
	return string(text), "", nil
}

// Message is a message. Only EventType is required; docs/outbox.md explains every member. A zero value is the table's default.
type Message struct {
	EventType      string
	Payload        Payload // nil: an empty body
	Destination    string  // "": the relay's routes choose
	MessageID      string  // "": a new UUID
	MessageKey     string  // order within a destination
	Headers        map[string]string
	ContentType    string
	CorrelationID  string
	Traceparent    string
	IdempotencyKey string
	NotBefore      time.Time
	ExpiresAt      time.Time
	Policy         string
	MaxAttempts    int
}

// Place says where the outbox is: schema and prefix of the relay's store URL.
type Place struct {
	Schema, Prefix string
}

func (p Place) table() (string, error) {
	for _, name := range []string{p.Schema, p.Prefix} {
		if name != "" && !word.MatchString(name) {
			return "", invalid("schema and prefix have letters, digits and '_' only, not %q", name)
		}
	}
	if p.Schema != "" {
		return fmt.Sprintf("%q.%q", p.Schema, p.Prefix+"outbox"), nil
	}
	return fmt.Sprintf("%q", p.Prefix+"outbox"), nil
}

func newID() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}

func (m Message) id() (string, error) {
	if m.MessageID == "" {
		if _, is := m.Payload.(Sealed); is {
			return "", invalid("a sealed payload is bound to its message_id: give the one that it was sealed with")
		}
		return newID()
	}
	if !visible.MatchString(m.MessageID) {
		return "", invalid("message_id has 1 to 256 visible ASCII characters")
	}
	return m.MessageID, nil
}

// row collects the statement. Times and numbers are cast, because drivers differ in what they send.
type row struct {
	names, marks []string
	values       []any
}

func (r *row) add(name, kind string, value any) {
	r.names = append(r.names, name)
	r.values = append(r.values, value)
	r.marks = append(r.marks, fmt.Sprintf("$%d::%s", len(r.values), kind))
}

func (r *row) addTexts(m Message) error {
	for _, t := range [...]struct{ name, text string }{
		{"destination", m.Destination}, {"event_type", m.EventType}, {"message_key", m.MessageKey}, {"content_type", m.ContentType},
		{"correlation_id", m.CorrelationID}, {"traceparent", m.Traceparent}, {"idempotency_key", m.IdempotencyKey}, {"policy", m.Policy},
	} {
		if err := checkText(t.name, t.text); err != nil {
			return err
		}
		if t.text != "" {
			r.add(t.name, "text", t.text)
		}
	}
	return nil
}

func (r *row) addHeaders(headers map[string]string) error {
	for name, value := range headers {
		if name == "" || control.MatchString(name+value) || !utf8.ValidString(name+value) {
			return invalid("headers have names, and texts without control characters")
		}
	}
	text, err := json.Marshal(headers)
	if err == nil {
		r.add("headers", "text", string(text))
	}
	return err
}

func (r *row) addTime(name string, at time.Time) {
	if !at.IsZero() {
		r.add(name, "timestamptz", at.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
}

func (m Message) row() (*row, string, error) {
	r := &row{}
	id, err := m.id()
	if err != nil {
		return nil, "", err
	}
	r.add("message_id", "text", id)
	if m.EventType == "" {
		return nil, "", invalid("event_type is empty")
	}
	if err := r.addTexts(m); err != nil {
		return nil, "", err
	}
	if m.Payload != nil {
		text, encoding, err := m.Payload.stored()
		if err != nil {
			return nil, "", err
		}
		r.add("payload", "text", text)
		if encoding != "" {
			r.add("encoding", "text", encoding)
		}
	}
	if m.Headers != nil {
		if err := r.addHeaders(m.Headers); err != nil {
			return nil, "", err
		}
	}
	r.addTime("not_before", m.NotBefore)
	r.addTime("expires_at", m.ExpiresAt)
	if m.MaxAttempts < 0 || m.MaxAttempts > math.MaxInt32 {
		return nil, "", invalid("max_attempts is not a count of attempts")
	}
	if m.MaxAttempts > 0 {
		r.add("max_attempts", "integer", fmt.Sprint(m.MaxAttempts))
	}
	return r, id, nil
}

func (m Message) insert(place Place) (statement string, values []any, id string, err error) {
	table, err := place.table()
	if err != nil {
		return "", nil, "", err
	}
	r, id, err := m.row()
	if err != nil {
		return "", nil, "", err
	}
	statement = fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(r.names, ", "), strings.Join(r.marks, ", "))
	return statement, r.values, id, nil
}

// Execer is what *sql.Tx and *sql.Conn have. A *sql.DB has it, too, but then the message is in no transaction of yours.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Enqueue writes the message in the transaction on PostgreSQL, and returns its message_id.
func Enqueue(ctx context.Context, tx Execer, m Message) (string, error) {
	return Place{}.Enqueue(ctx, tx, m)
}

// Enqueue does the same for an outbox in a schema, or with a prefix.
func (p Place) Enqueue(ctx context.Context, tx Execer, m Message) (string, error) {
	statement, values, id, err := m.insert(p)
	if err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, statement, values...); err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	return id, nil
}

// PgxExecer is what pgx.Tx, *pgx.Conn and *pgxpool.Tx have; T is pgconn.CommandTag, which the compiler finds out.
type PgxExecer[T any] interface {
	Exec(ctx context.Context, query string, args ...any) (T, error)
}

// EnqueuePgx is Enqueue for pgx.
func EnqueuePgx[T any](ctx context.Context, tx PgxExecer[T], m Message) (string, error) {
	return EnqueuePgxAt(ctx, tx, Place{}, m)
}

// EnqueuePgxAt does the same for an outbox in a schema, or with a prefix.
func EnqueuePgxAt[T any](ctx context.Context, tx PgxExecer[T], place Place, m Message) (string, error) {
	statement, values, id, err := m.insert(place)
	if err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, statement, values...); err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	return id, nil
}
