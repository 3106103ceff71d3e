/* SPDX-License-Identifier: Apache-2.0 */
/* Where an answer says what is wrong. No two services agree; the names below are those of frameworks and public services
 * that people call most (tests/unit/test_answer.c has their answers). Whatever cannot be read gives fewer words, never an error:
 * a body is cut at a bound, and may be anything. */
#include <string.h>

#include "base/str.h"
#include "payload/answer.h"
#include "payload/scan.h"

enum {
    DEPTH = 16, /* of containers that are looked into */
    WORDS_MAX = 2 * HK_ANSWER_READ
};

/* ---- JSON ---- */

/* What a name tells of its value. */
enum slot {
    S_NONE = 0,
    S_MESSAGE,
    S_ERROR, /* a text, or an object with all of these */
    S_TITLE,
    S_DETAIL, /* a text, or items */
    S_CODE,
    S_ITEMS, /* several errors, or fields with theirs */
    S_FIELD, /* which field an item is about */
    S_DULL,  /* says nothing about what is wrong */
    N_SLOTS
};

/* Without regard to case, '_' and '-'. */
static const struct {
    const char *name;
    enum slot slot;
} names[] = {
    {"message", S_MESSAGE},
    {"msg", S_MESSAGE},
    {"errormessage", S_MESSAGE},
    {"errormsg", S_MESSAGE},
    {"errordescription", S_MESSAGE},
    {"defaultmessage", S_MESSAGE},
    {"faultstring", S_MESSAGE},
    {"description", S_MESSAGE},
    {"error", S_ERROR},
    {"fault", S_ERROR},
    {"exception", S_ERROR},
    {"title", S_TITLE},
    {"summary", S_TITLE},
    {"reason", S_TITLE},
    {"detail", S_DETAIL},
    {"details", S_DETAIL},
    {"code", S_CODE},
    {"errorcode", S_CODE},
    {"__type", S_CODE},
    {"type", S_DULL},
    {"errors", S_ITEMS},
    {"violations", S_ITEMS},
    {"fielderrors", S_ITEMS},
    {"invalidparams", S_ITEMS},
    {"issues", S_ITEMS},
    {"field", S_FIELD},
    {"param", S_FIELD},
    {"parameter", S_FIELD},
    {"pointer", S_FIELD},
    {"path", S_FIELD},
    {"propertypath", S_FIELD},
    {"property", S_FIELD},
    {"attribute", S_FIELD},
    {"loc", S_FIELD},
    {"name", S_FIELD},
    {"status", S_DULL},
    {"timestamp", S_DULL},
    {"instance", S_DULL},
    {"id", S_DULL},
};

/* What stands in a container. */
enum place {
    P_ROOT,  /* the answer, or its `error` */
    P_ITEMS, /* errors: an array of them, or an object of fields */
    P_ITEM,  /* one of them */
    P_FIELD, /* texts about one field */
    P_OTHER
};

struct frame {
    enum place place;
    struct hk_str name; /* what the container is called, "" = the answer itself */
    bool array;
    size_t n; /* values so far */
};

/* Raw tokens; ptr NULL: not there. */
struct found {
    struct hk_str message, error, title, detail, code;
    struct hk_str item, item_field; /* of the first error of several */
    bool item_is_title;             /* a better one may come */
    struct hk_str any, any_name;    /* the first text of all, with its name */
};

static bool same_name(struct hk_str name, const char *plain)
{
    size_t at = 0;
    if (plain[0] == '_')
        return hk_str_eq(name, hk_str_of(plain));
    for (; *plain; plain++, at++) {
        while (at < name.len && (name.ptr[at] == '_' || name.ptr[at] == '-'))
            at++;
        if (at == name.len || hk_ascii_lower(name.ptr[at]) != *plain)
            return false;
    }
    return at == name.len;
}

static enum slot slot_of(struct hk_str name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (same_name(name, names[i].name))
            return names[i].slot;
    bool is_id = name.len > 2 && (hk_str_eqi((struct hk_str){name.ptr + name.len - 2, 2}, hk_str_of("id")));
    return is_id ? S_DULL : S_NONE;
}

static void keep_first(struct hk_str *at, struct hk_str raw)
{
    if (!at->ptr)
        *at = raw;
}

static bool is_text(const struct hk_scan_token *token)
{
    return token->kind == HK_SCAN_STRING && token->raw.len > 2;
}

static void take_of_answer(struct found *f, enum slot slot, const struct hk_scan_token *token)
{
    if (slot == S_CODE && token->kind == HK_SCAN_NUMBER && token->raw.len > 3)
        keep_first(&f->code, token->raw); /* three digits are the status again */
    if (!is_text(token))
        return;
    if (slot == S_MESSAGE)
        keep_first(&f->message, token->raw);
    else if (slot == S_ERROR || slot == S_ITEMS)
        keep_first(&f->error, token->raw);
    else if (slot == S_TITLE)
        keep_first(&f->title, token->raw);
    else if (slot == S_DETAIL)
        keep_first(&f->detail, token->raw);
    else if (slot == S_CODE)
        keep_first(&f->code, token->raw);
}

static void take_of_item(struct found *f, struct hk_str name, enum slot slot,
                         const struct hk_scan_token *token)
{
    if (!is_text(token))
        return;
    bool title = slot == S_TITLE || slot == S_ERROR;
    if (slot == S_FIELD && (!f->item_field.ptr || same_name(name, "loc"))) /* ["body", "currency"] */
        f->item_field = token->raw;
    else if (slot == S_CODE)
        keep_first(&f->code, token->raw);
    else if ((title || slot == S_MESSAGE || slot == S_DETAIL) &&
             (!f->item.ptr || (f->item_is_title && !title))) {
        f->item = token->raw;
        f->item_is_title = title;
    }
}

/* {"currency": ["is missing"]}: `name` is a field of the message that was refused. */
static void take_of_field(struct found *f, struct hk_str name, const struct hk_scan_token *token)
{
    if (!is_text(token) || f->item.ptr)
        return;
    f->item = token->raw;
    if (!f->item_field.ptr)
        f->item_field = name;
}

static void take_scalar(struct found *f, const struct frame *in, struct hk_str name,
                        const struct hk_scan_token *token)
{
    enum slot slot = slot_of(name);
    if (is_text(token) && slot != S_DULL && slot != S_CODE && slot != S_FIELD && !f->any.ptr) {
        f->any = token->raw;
        f->any_name = name;
    }
    if (in->place == P_ROOT)
        take_of_answer(f, slot, token);
    else if (in->place == P_ITEMS && in->array) /* ["currency is missing"] */
        take_of_field(f, (struct hk_str){"", 0}, token);
    else if (in->place == P_FIELD || (in->place == P_ITEMS && slot == S_NONE))
        take_of_field(f, name, token);
    else if (in->place != P_OTHER)
        take_of_item(f, name, slot, token);
}

static enum place place_of(struct found *f, const struct frame *in, struct hk_str name, bool array)
{
    enum slot slot = slot_of(name);
    switch (in->place) {
    case P_ROOT:
        if (in->array && (slot == S_MESSAGE || slot == S_ERROR))
            return P_ITEM;
        if (slot == S_ERROR || slot == S_MESSAGE)
            return P_ROOT;
        return slot == S_ITEMS || slot == S_DETAIL ? P_ITEMS : P_OTHER;
    case P_ITEMS:
        if (!in->array && (array || slot == S_NONE) && !f->item_field.ptr && !f->item.ptr)
            f->item_field = name;
        return !in->array && array ? P_FIELD : P_ITEM;
    case P_FIELD:
        return P_ITEM;
    case P_ITEM:
    case P_OTHER:
        return in->place;
    }
    return P_OTHER;
}

/* Of several errors the first counts. */
static bool is_later_item(const struct frame *in)
{
    return in->array && in->place == P_ITEMS && in->n > 1;
}

static struct hk_str unquoted(struct hk_str raw)
{
    return (struct hk_str){raw.ptr + 1, raw.len - 2};
}

static void look_through(struct hk_str json, struct found *f)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    struct frame frames[DEPTH] = {{.place = P_ROOT, .name = {"", 0}}};
    struct hk_str name = {"", 0};
    size_t depth = 0;
    hk_scan_init(&scan, json);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token)) {
        struct frame *in = &frames[depth];
        if (kind == HK_SCAN_KEY) {
            name = unquoted(token.raw);
            continue;
        }
        if (kind == HK_SCAN_OBJECT_END || kind == HK_SCAN_ARRAY_END) {
            depth -= depth > 0;
            continue;
        }
        name = in->array ? in->name : name;
        in->n++;
        bool container = kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY;
        if (container && (depth + 1 == DEPTH || is_later_item(in))) {
            if (!hk_scan_leave(&scan))
                return;
        } else if (container) {
            bool array = kind == HK_SCAN_ARRAY;
            enum place place = depth ? place_of(f, in, name, array) : array ? P_ITEMS : P_ROOT;
            frames[++depth] = (struct frame){.place = place, .name = name, .array = array};
        } else if (depth && !is_later_item(in)) {
            take_scalar(f, in, name, &token);
        }
    }
}

static void decode(struct hk_str raw, struct hk_buf *out)
{
    if (raw.len && raw.ptr[0] == '"')
        (void)hk_scan_text(raw, out);
    else if (raw.len)
        (void)hk_buf_add(out, raw.ptr, raw.len);
}

/* Behind what stands there already, unless that says it. */
static void add_words(struct hk_buf *out, const char *before, struct hk_str words, const char *behind)
{
    bool sentence = out->len && strchr(".:;!?", out->data[out->len - 1]);
    if (!words.len || hk_str_containsi(hk_buf_str(out), words))
        return;
    if (out->len)
        (void)hk_buf_adds(out, sentence && before[0] == ':' ? " " : before);
    (void)hk_buf_add(out, words.ptr, words.len);
    (void)hk_buf_adds(out, behind);
}

static void add_part(struct hk_buf *out, const char *before, struct hk_str raw, const char *behind)
{
    struct hk_buf text;
    hk_buf_init(&text, WORDS_MAX);
    decode(raw, &text);
    add_words(out, before, hk_buf_str(&text), behind);
    hk_buf_inherit(out, &text);
    hk_buf_fini(&text);
}

/* The field's name, unless the text has it. */
static void add_item(struct hk_buf *out, const struct found *f)
{
    struct hk_buf item;
    hk_buf_init(&item, WORDS_MAX);
    decode(f->item, &item);
    struct hk_str text = hk_buf_str(&item);
    if (f->item_field.len) {
        struct hk_buf field;
        hk_buf_init(&field, WORDS_MAX);
        decode(f->item_field, &field);
        if (!hk_str_containsi(text, hk_buf_str(&field)))
            add_words(out, ": ", hk_buf_str(&field), "");
        hk_buf_inherit(out, &field);
        hk_buf_fini(&field);
    }
    add_words(out, ": ", text, "");
    hk_buf_inherit(out, &item);
    hk_buf_fini(&item);
}

static bool is_one_word(struct hk_str raw)
{
    return raw.ptr && !memchr(raw.ptr, ' ', raw.len);
}

static void write_found(struct found *f, struct hk_buf *out)
{
    bool main = f->message.ptr || f->title.ptr || f->detail.ptr;
    if (main && is_one_word(f->error)) /* {"error": "invalid_grant", "error_description": …} */
        keep_first(&f->code, f->error);
    add_part(out, ": ", f->message.ptr ? f->message : f->title, "");
    if (!main)
        add_part(out, ": ", f->error, "");
    add_part(out, ": ", f->detail, "");
    add_item(out, f);
    add_part(out, " (", f->code, out->len ? ")" : "");
    if (out->len)
        return;
    add_part(out, "", f->any_name, "");
    add_part(out, ": ", f->any, "");
}

/* ---- XML and HTML ---- */

static const char *const elements[] = {"message", "faultstring", "pre",   "title", "h1",
                                       "detail",  "description", "error", "code",  "p"};

static size_t find_char(struct hk_str s, size_t from, char c)
{
    const char *at = from < s.len ? memchr(s.ptr + from, c, s.len - from) : NULL;
    return at ? (size_t)(at - s.ptr) : s.len;
}

/* Behind the tag that opens the next `name` from `at` on, with or without a namespace; s.len: there is none. */
static size_t find_element(struct hk_str s, size_t at, struct hk_str name)
{
    for (at = find_char(s, at, '<'); at < s.len; at = find_char(s, at + 1, '<')) {
        size_t end = find_char(s, at, '>');
        struct hk_str tag = {s.ptr + at + 1, end - at - 1};
        for (size_t i = 0; i < tag.len; i++)
            if (tag.ptr[i] == ' ' || tag.ptr[i] == '\t' || tag.ptr[i] == '\r' || tag.ptr[i] == '\n')
                tag.len = i;
        const char *colon = tag.len ? memchr(tag.ptr, ':', tag.len) : NULL;
        if (colon)
            tag = (struct hk_str){colon + 1, tag.len - (size_t)(colon + 1 - tag.ptr)};
        if (end < s.len && hk_str_eqi(tag, name))
            return end + 1;
    }
    return s.len;
}

static const struct {
    const char *name;
    char meant;
} entities[] = {{"&lt;", '<'},   {"&gt;", '>'},    {"&amp;", '&'},   {"&quot;", '"'}, {"&apos;", '\''},
                {"&#39;", '\''}, {"&#039;", '\''}, {"&#x27;", '\''}, {"&nbsp;", ' '}};

static void add_text(struct hk_str text, struct hk_buf *out)
{
    for (size_t i = 0; i < text.len;) {
        struct hk_str rest = {text.ptr + i, text.len - i};
        size_t e = 0, n = sizeof entities / sizeof entities[0];
        while (text.ptr[i] == '&' && e < n && !hk_str_starts(rest, hk_str_of(entities[e].name)))
            e++;
        bool entity = text.ptr[i] == '&' && e < n;
        (void)hk_buf_addc(out, entity ? entities[e].meant : text.ptr[i]);
        i += entity ? strlen(entities[e].name) : 1;
    }
}

static bool is_blank(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] > ' ')
            return false;
    return true;
}

static void find_in_markup(struct hk_str body, struct hk_buf *out)
{
    struct hk_str cdata = hk_str_of("<![CDATA[");
    for (size_t k = 0; k < sizeof elements / sizeof elements[0]; k++) {
        struct hk_str name = hk_str_of(elements[k]);
        for (size_t at = find_element(body, 0, name); at < body.len; at = find_element(body, at, name)) {
            struct hk_str rest = {body.ptr + at, body.len - at};
            bool raw = hk_str_starts(rest, cdata);
            size_t from = raw ? at + cdata.len : at;
            struct hk_str text = {body.ptr + from, find_char(body, from, raw ? ']' : '<') - from};
            if (is_blank(text))
                continue;
            if (raw)
                (void)hk_buf_add(out, text.ptr, text.len);
            else
                add_text(text, out);
            return;
        }
    }
}

/* ---- any ---- */

static void find_line(struct hk_str body, struct hk_buf *out)
{
    struct hk_str line = {"", 0};
    while (is_blank(line) && body.len)
        line = hk_str_cut(&body, '\n');
    if (!is_blank(line) && !memchr(line.ptr, '\0', line.len))
        (void)hk_buf_add(out, line.ptr, line.len);
}

static struct hk_str without_blanks(struct hk_str s)
{
    if (hk_str_starts(s, hk_str_of("\xef\xbb\xbf"))) /* a byte order mark */
        s = (struct hk_str){s.ptr + 3, s.len - 3};
    while (s.len && (unsigned char)s.ptr[0] <= ' ')
        s = (struct hk_str){s.ptr + 1, s.len - 1};
    while (s.len && (unsigned char)s.ptr[s.len - 1] <= ' ')
        s.len--;
    return s;
}

enum hk_code hk_answer_find(struct hk_str body, struct hk_buf *out)
{
    struct found found = {.item_is_title = false};
    body = without_blanks(body);
    if (!body.len)
        return hk_buf_status(out);
    char c = body.ptr[0];
    bool is_json = hk_scan_check(body, NULL) == HK_OK;
    if (c == '{' || c == '[')
        look_through(body, &found);
    else if (c == '"' && is_json)
        found.message = body;
    write_found(&found, out);
    if (c == '<')
        find_in_markup(body, out);
    else if (!out->len &&
             !is_json) /* JSON without a word says nothing; a log line may begin with a bracket, too */
        find_line(body, out);
    return hk_buf_status(out);
}
