/* SPDX-License-Identifier: Apache-2.0 */
/* Strict on purpose: a wrong text that is refused here is an error with a position; one that passes is an outage at night or a request
 * to the wrong machine. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "config/config.h"
#include "config/text.h"
#include "payload/validate.h"

static bool refuse(char why[HK_WHY_MAX], const char *text)
{
    (void)snprintf(why, HK_WHY_MAX, "%s", text);
    return false;
}

static bool is_alnum(char c)
{
    return hk_ascii_isalpha(c) || hk_ascii_isdigit(c);
}

static bool is_graph(char c)
{
    return c > ' ' && c < 0x7f;
}

static bool has_control(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < ' ' || c == 0x7f)
            return true;
    }
    return false;
}

bool hk_text_is_name(struct hk_str s)
{
    if (s.len == 0 || s.len > 63 || s.ptr[0] == '.' || s.ptr[0] == '-')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_alnum(s.ptr[i]) && !memchr("_.-", s.ptr[i], 3))
            return false;
    }
    return true;
}

bool hk_text_is_token(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_alnum(s.ptr[i]) && !memchr("!#$%&'*+-.^_`|~", s.ptr[i], 15))
            return false;
    }
    return s.len > 0;
}

bool hk_text_check_sql_name(struct hk_str s, char why[HK_WHY_MAX])
{
    bool ok = s.len > 0 && !hk_ascii_isdigit(s.ptr[0]);
    for (size_t i = 0; ok && i < s.len; i++)
        ok = is_alnum(s.ptr[i]) || s.ptr[i] == '_';
    return ok || refuse(why, "must be letters, digits and underscores, and begin with no digit");
}

bool hk_text_check_printable(struct hk_str s, char why[HK_WHY_MAX])
{
    return !has_control(s) || refuse(why, "must not hold control characters");
}

bool hk_text_check_header_value(struct hk_str s, char why[HK_WHY_MAX])
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return refuse(why, "must not hold line breaks or other control characters");
    }
    return true;
}

bool hk_text_check_key_id(struct hk_str s, char why[HK_WHY_MAX])
{
    bool good = s.len > 0;
    for (size_t i = 0; i < s.len && good; i++)
        good = hk_ascii_isalpha(s.ptr[i]) || hk_ascii_isdigit(s.ptr[i]) || s.ptr[i] == '-' || s.ptr[i] == '_';
    if (!good)
        (void)snprintf(why, HK_WHY_MAX, "has letters, digits, '-' and '_' only");
    return good;
}

bool hk_text_check_header_name(struct hk_str s, char why[HK_WHY_MAX])
{
    return hk_text_is_token(s) ||
           refuse(why, "must be an HTTP header's name: letters, digits and !#$%&'*+-.^_`|~");
}

bool hk_text_check_user(struct hk_str s, char why[HK_WHY_MAX])
{
    if (memchr(s.ptr, ':', s.len))
        return refuse(why, "must not hold a colon: it would end the name");
    return hk_text_check_printable(s, why);
}

bool hk_text_check_reason(struct hk_str s, char why[HK_WHY_MAX])
{
    bool ok = s.len > 0 && s.ptr[0] >= 'A' && s.ptr[0] <= 'Z';
    for (size_t i = 0; ok && i < s.len; i++)
        ok = (s.ptr[i] >= 'A' && s.ptr[i] <= 'Z') || hk_ascii_isdigit(s.ptr[i]) || s.ptr[i] == '_';
    return ok || refuse(why, "must be a reason code: capitals, digits and underscores, such as CARD_EXPIRED");
}

/* `err` says what is wrong; its words fit behind these. */
static bool refuse_path(char why[HK_WHY_MAX], const struct hk_err *err)
{
    (void)snprintf(why, HK_WHY_MAX, "is no path: %.180s", err->message);
    return false;
}

bool hk_text_check_path(struct hk_str s, char why[HK_WHY_MAX])
{
    struct hk_err err = {.code = HK_OK};
    return hk_path_parse(s, NULL, &err) == HK_OK || refuse_path(why, &err);
}

bool hk_text_check_field(struct hk_str s, char why[HK_WHY_MAX])
{
    struct hk_err err = {.code = HK_OK};
    return hk_field_parse(s, NULL, NULL, &err) == HK_OK || refuse_path(why, &err);
}

/* ---- addresses ---- */

static bool parse_port(struct hk_str s, uint64_t least)
{
    uint64_t port = 0;
    return s.len <= 5 && hk_parse_u64(s, &port, NULL) == HK_OK && port >= least && port <= 65535;
}

static bool is_ip(struct hk_str s, bool v6)
{
    struct hk_ip ip;
    return hk_ip_parse(s, &ip) && ip.v6 == v6;
}

/* Labels of letters, digits, - and _, 63 bytes each; what looks like a number must be a whole IPv4 address, since
 * resolvers take 127.1 and 0x7f000001 for addresses. */
static bool is_host_name(struct hk_str s)
{
    if (s.len && s.ptr[s.len - 1] == '.')
        s.len--;
    if (s.len == 0 || s.len > 253)
        return false;
    struct hk_str rest = s;
    struct hk_str label;
    do {
        label = hk_str_cut(&rest, '.');
        if (!label.len || label.len > 63 || label.ptr[0] == '-' || label.ptr[label.len - 1] == '-')
            return false;
        for (size_t i = 0; i < label.len; i++) {
            if (!is_alnum(label.ptr[i]) && label.ptr[i] != '-' && label.ptr[i] != '_')
                return false;
        }
    } while (rest.ptr);
    return !hk_ascii_isdigit(label.ptr[0]) || is_ip(s, false);
}

/* Cuts a host off `*rest`, which then holds the port, or has no `ptr` when there is none. */
static bool cut_host(struct hk_str *rest)
{
    if (rest->len == 0 || rest->ptr[0] != '[')
        return is_host_name(hk_str_cut(rest, ':'));
    struct hk_str address = hk_str_cut(rest, ']');
    if (!rest->ptr || !is_ip((struct hk_str){address.ptr + 1, address.len - 1}, true))
        return false;
    return hk_str_cut(rest, ':').len == 0; /* nothing stands between ] and : */
}

/* host, host:port, [v6] or [v6]:port. */
static bool is_authority(struct hk_str s, bool needs_port, uint64_t least_port)
{
    struct hk_str port = s;
    if (!cut_host(&port))
        return false;
    return port.ptr ? parse_port(port, least_port) : !needs_port;
}

/* Listening on a name would mean to look it up first: only the one that every machine has is taken. */
static bool is_listen(struct hk_str s, struct hk_ip *out_ip)
{
    struct hk_str rest = s, host;
    if (!is_authority(s, true, 0))
        return false;
    if (s.ptr[0] == '[') {
        rest = (struct hk_str){s.ptr + 1, s.len - 1};
        host = hk_str_cut(&rest, ']');
    } else {
        host = hk_str_cut(&rest, ':');
    }
    return hk_ip_parse(hk_str_eqi(host, hk_str_of("localhost")) ? hk_str_of("127.0.0.1") : host, out_ip);
}

bool hk_text_refuse(char why[HK_WHY_MAX], const char *text)
{
    return refuse(why, text);
}

bool hk_text_is_authority(struct hk_str s)
{
    return is_authority(s, false, 1);
}

bool hk_text_is_authority_with_port(struct hk_str s)
{
    return is_authority(s, true, 1);
}

bool hk_text_check_listen(struct hk_str s, char why[HK_WHY_MAX])
{
    struct hk_ip ip;
    return hk_str_eq(s, hk_str_of("none")) || is_listen(s, &ip) ||
           refuse(why, "must be an address and a port such as 127.0.0.1:8189 or [::1]:8189");
}

bool hk_text_listen_is_local(struct hk_str s)
{
    struct hk_ip ip;
    const char *special = is_listen(s, &ip) ? hk_ip_special(&ip) : "loopback";
    return special && strcmp(special, "loopback") == 0;
}

bool hk_text_check_host(struct hk_str s, char why[HK_WHY_MAX])
{
    struct hk_str rest = s;
    return (cut_host(&rest) && !rest.ptr) ||
           refuse(why, "must be a host name such as relay.example, without a port");
}

bool hk_text_parse_cidr(struct hk_str s, struct hk_cidr *out, char why[HK_WHY_MAX])
{
    struct hk_err err = {.code = HK_OK};
    char shown[HK_SHOW_MAX];
    if (hk_cidr_parse(s, out, &err) == HK_OK)
        return true;
    /* its message begins with the value, where ours has the option's name */
    struct hk_str message = hk_str_of(err.message);
    size_t value = strlen(hk_show(s, shown)) + 1;
    if (message.len > value && hk_str_starts(message, hk_str_of(shown)))
        return refuse(why, message.ptr + value);
    return refuse(why, "must be an address range such as 10.0.0.0/8");
}

/* ---- secrets ---- */

static bool is_base64(char c)
{
    return hk_ascii_isalpha(c) || hk_ascii_isdigit(c) || c == '+' || c == '/';
}

/* Only the look of it: the sink decodes it. */
bool hk_text_check_secret(struct hk_str s, char why[HK_WHY_MAX])
{
    enum {
        BYTES_MIN = 24,
        BYTES_MAX = 64
    };

    static const char prefix[] = "whsec_", pair[] = "whsk_";
    static const char must[] = "must be whsec_ and base64 of 24 to 64 random bytes: "
                               "echo whsec_$(openssl rand -base64 32) makes one";
    static const char must_pair[] =
        "must be whsk_ and base64 of an Ed25519 key: 32 bytes, or 64 with its public key";
    size_t end = s.len, begin = hk_str_starts(s, hk_str_of(pair)) ? sizeof pair - 1 : sizeof prefix - 1;
    bool is_pair = begin == sizeof pair - 1;
    if (!is_pair && !hk_str_starts(s, hk_str_of(prefix)))
        return refuse(why, must);
    for (int i = 0; i < 2 && (s.len - begin) % 4 == 0 && end > begin && s.ptr[end - 1] == '='; i++)
        end--;
    size_t n = end - begin;
    size_t bytes = n / 4 * 3 + (n % 4 ? n % 4 - 1 : 0);
    bool ok = n % 4 != 1 && bytes >= BYTES_MIN && bytes <= BYTES_MAX;
    if (is_pair)
        ok = ok && (bytes == BYTES_MAX / 2 || bytes == BYTES_MAX);
    for (size_t i = begin; ok && i < end; i++)
        ok = is_base64(s.ptr[i]);
    return ok || refuse(why, is_pair ? must_pair : must);
}

/* ---- URLs ---- */

/* Cuts "scheme://" off; false when there is none. */
static bool cut_scheme(struct hk_str *url, struct hk_str *scheme)
{
    for (size_t i = 0; i + 2 < url->len; i++) {
        if (memcmp(url->ptr + i, "://", 3) != 0)
            continue;
        *scheme = (struct hk_str){url->ptr, i};
        *url = (struct hk_str){url->ptr + i + 3, url->len - i - 3};
        return true;
    }
    return false;
}

static struct hk_str cut_authority(struct hk_str url)
{
    size_t n = 0;
    while (n < url.len && !memchr("/?#", url.ptr[n], 3))
        n++;
    return (struct hk_str){url.ptr, n};
}

bool hk_text_check_http_url(struct hk_str s, char why[HK_WHY_MAX])
{
    struct hk_str scheme = {NULL, 0};
    struct hk_str rest = s;
    if (!cut_scheme(&rest, &scheme) ||
        (!hk_str_eqi(scheme, hk_str_of("http")) && !hk_str_eqi(scheme, hk_str_of("https"))))
        return refuse(why, "must begin with http:// or https://");
    for (size_t i = 0; i < s.len; i++) {
        if (!is_graph(s.ptr[i]) || memchr("\"<>\\^`{|}", s.ptr[i], 9))
            return refuse(
                why,
                "must not hold spaces, control characters, quotes or other characters that a URL escapes");
    }
    struct hk_str authority = cut_authority(rest);
    if (memchr(authority.ptr, '@', authority.len))
        return refuse(why, "must not hold a user name or password: use auth");
    if (memchr(s.ptr, '#', s.len))
        return refuse(why, "must not have a fragment (#…): it is never sent");
    if (!authority.len)
        return refuse(why, "has no host");
    if (!is_authority(authority, false, 1))
        return refuse(why, "has a host or port that is not valid");
    return true;
}

/* P is 1 to 63 of letters, digits, - . : and L and Q letters, digits and -; Q up to 100. */
static bool is_queue_part(struct hk_str s, size_t most, const char *others)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isalpha(s.ptr[i]) && !hk_ascii_isdigit(s.ptr[i]) && !strchr(others, s.ptr[i]))
            return false;
    return s.len > 0 && s.len <= most;
}

bool hk_text_check_queue(struct hk_str s, char why[HK_WHY_MAX])
{
    static const char *const words[] = {"projects", "locations", "queues"};
    static const char *const others[] = {"-.:", "-", "-"};
    static const size_t most[] = {63, 63, 100};
    for (size_t i = 0; i < 3; i++) {
        struct hk_str word = hk_str_cut(&s, '/');
        struct hk_str part = s.ptr ? hk_str_cut(&s, '/') : (struct hk_str){"", 0};
        if (!hk_str_eq(word, hk_str_of(words[i])) || !is_queue_part(part, most[i], others[i]))
            return refuse(
                why,
                "must be projects/P/locations/L/queues/Q, with letters, digits and hyphens in the parts");
    }
    return !s.ptr || refuse(why, "must end behind the queue");
}

/* Fields of the message may stand behind the host; the rest must be a URL without them. */
static bool without_fields(struct hk_str s, char *out, size_t room, char why[HK_WHY_MAX])
{
    static const char *const known[] = {HK_CONF_URL_EVENT_TYPE, HK_CONF_URL_MESSAGE_KEY,
                                        HK_CONF_URL_DESTINATION};
    struct hk_str scheme = {NULL, 0}, rest = s;
    size_t n = 0, host_end = 0;
    if (cut_scheme(&rest, &scheme))
        host_end = (size_t)(rest.ptr - s.ptr) + cut_authority(rest).len;
    for (size_t i = 0; i < s.len && n + 1 < room;) {
        struct hk_str at = {s.ptr + i, s.len - i};
        size_t k = 0;
        while (k < 3 && !hk_str_starts(at, hk_str_of(known[k])))
            k++;
        if (s.ptr[i] == '{' && (k == 3 || i < host_end))
            return refuse(
                why,
                "may hold {event_type}, {message_key} and {destination} behind the host, and no other braces");
        out[n++] = s.ptr[i] == '{' ? 'x' : s.ptr[i];
        i += s.ptr[i] == '{' ? strlen(known[k]) : 1;
    }
    out[n] = '\0';
    return true;
}

bool hk_text_check_target(struct hk_str s, char why[HK_WHY_MAX])
{
    char plain[2049];
    if (hk_str_eq(s, hk_str_of(HK_CONF_URL_MESSAGE)))
        return true;
    return without_fields(s, plain, sizeof plain, why) && hk_text_check_http_url(hk_str_of(plain), why);
}

bool hk_text_check_pin(struct hk_str s, char why[HK_WHY_MAX])
{
    static const char prefix[] = "sha256//";
    size_t n = sizeof prefix - 1;
    bool ok = s.len == n + 44 && hk_str_starts(s, hk_str_of(prefix)) && s.ptr[s.len - 1] == '=';
    for (size_t i = n; ok && i < s.len - 1; i++)
        ok = is_base64(s.ptr[i]);
    return ok ||
           refuse(
               why,
               "must be sha256// and base64 of the SHA-256 of the certificate's public key, 44 characters");
}

/* As a browser writes it: nothing behind the host and port. */
bool hk_text_check_origin(struct hk_str s, char why[HK_WHY_MAX])
{
    struct hk_str scheme = {NULL, 0}, rest = s;
    if (cut_scheme(&rest, &scheme) &&
        (hk_str_eq(scheme, hk_str_of("http")) || hk_str_eq(scheme, hk_str_of("https"))) &&
        is_authority(rest, false, 1))
        return true;
    return refuse(why, "must be an origin such as https://dash.example, without a path");
}

bool hk_text_check_store_url(struct hk_str s, char why[HK_WHY_MAX])
{
    static const char *const servers[] = {"postgres", "postgresql"};
    if (has_control(s))
        return refuse(why, "must not hold control characters");
    if (hk_str_starts(s, hk_str_of("sqlite:")))
        return s.len > strlen("sqlite:") || refuse(why, "names no file behind sqlite:");
    struct hk_str scheme = {NULL, 0};
    struct hk_str rest = s;
    if (cut_scheme(&rest, &scheme)) {
        for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++) {
            if (hk_str_eq(scheme, hk_str_of(servers[i])))
                return true;
        }
    }
    return refuse(why, "must be sqlite:PATH or postgres://…: there is no store of another kind");
}

bool hk_text_authority_ip(struct hk_str authority, struct hk_ip *out_ip)
{
    struct hk_str host = authority;
    struct hk_str port = host;
    if (host.len && host.ptr[0] == '[') {
        host = hk_str_cut(&port, ']');
        return hk_ip_parse((struct hk_str){host.ptr + 1, host.len - 1}, out_ip);
    }
    host = hk_str_cut(&port, ':');
    return hk_ip_parse(hk_str_eqi(host, hk_str_of("localhost")) ? hk_str_of("127.0.0.1") : host, out_ip);
}

bool hk_text_url_ip(const char *url, struct hk_ip *out_ip)
{
    struct hk_str scheme = {NULL, 0};
    struct hk_str rest = hk_str_of(url);
    return cut_scheme(&rest, &scheme) && hk_text_authority_ip(cut_authority(rest), out_ip);
}

bool hk_text_url_is_local(const char *url)
{
    struct hk_ip ip;
    const char *special = hk_text_url_ip(url, &ip) ? hk_ip_special(&ip) : NULL;
    return special && strcmp(special, "loopback") == 0;
}
