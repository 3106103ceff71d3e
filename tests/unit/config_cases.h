/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations that are wrong, each with all that must be reported about it: the wording is part of the contract
 * with the person who reads it, so it changes here on purpose only. */
#ifndef HK_TESTS_CONFIG_CASES_H
#define HK_TESTS_CONFIG_CASES_H

static const struct {
    const char *name, *text, *report;
} bad_configs[] = {
    {"the root is a list", "- a\n",
     "1:1: the file must be a mapping such as { store: sqlite:hikyaku.db }, not a list\n"},
    {"the root is a scalar", "hello\n",
     "1:1: the file must be a mapping such as { store: sqlite:hikyaku.db }, not one value\n"},
    {"batches of messages that name their URL",
     "destinations: { a: { http: { url: message, batch: 10 } } }\n",
     "1:51: \"batch\" needs a URL of its own, not \"message\"\n"},
    {"batches to a URL with a field of the message",
     "destinations: { a: { http: { url: 'https://a.example/{message_key}', batch: 10 } } }\n",
     "1:77: \"batch\" needs one URL for all messages, without {event_type} and {message_key}\n"},
    {"batches of events whose attributes are header fields",
     "destinations: { a: { http: { url: 'https://a.example/', cloudevents: binary, batch: 10 } } }\n",
     "1:70: a batch holds whole events: give \"cloudevents: structured\" with \"batch\"\n"},
    {"batches of events in lines",
     "destinations: { a: { http: { url: 'https://a.example/', cloudevents: structured, batch: { format: ndjson } } } "
     "}\n",
     "1:89: a batch of CloudEvents is an array: \"format: ndjson\" goes without \"cloudevents\"\n"},
    {"batches with a header for one message",
     "destinations: { a: { http: { url: 'https://a.example/', batch: 10, headers: { X: '{attempt}' } } } }\n",
     "1:82: header \"X\" stands for a field of one message, and \"batch\" sends many: items hold these fields "
     "(docs/batches.md)\n"},
    {"a batch of none", "destinations: { a: { http: { url: 'https://a.example/', batch: 0 } } }\n",
     "1:64: \"batch\" must be from 1 to 1000, not \"0\"\n"},
    {"a route that sends twice to a destination",
     "destinations: { a: { 'null': {} }, b: { 'null': {} } }\n"
     "routes:\n"
     "  - { event_type: x, destination: [a, b] }\n"
     "  - { event_type: y, destination: [a, b, a] }\n"
     "  - { event_type: z, destination: [b, b, b] }\n",
     "4:42: destination \"a\" is named twice\n"
     "5:39: destination \"b\" is named twice\n"},
    {"sealing without a key", "seal: { mode: end }\n",
     "1:15: there is nothing to seal with: give \"keys\"\n"},
    {"two keys of one id",
     "seal: { keys: [ { id: a, file: x }, { id: b, env: Y }, { id: a, credential: z } ] }\n",
     "1:15: two keys have the id a\n"},
    {"a key from nowhere, and one from two places",
     "seal: { keys: [ { id: a }, { id: b, file: x, env: Y } ] }\n",
     "1:17: key 1 of seal needs \"file\" or \"env\" or \"credential\" or \"command\", for example file: "
     "/run/keys/hikyaku\n"
     "1:46: give \"file\" or \"env\", not both\n"},
    {"a key with a bad id", "seal: { keys: [ { id: a.b, file: x } ], store: 'my shop' }\n",
     "1:23: \"id\" has letters, digits, '-' and '_' only\n"
     "1:48: \"store\" has letters, digits, '-' and '_' only\n"},
    {"unknown key at the top", "polices: {}\n", "1:1: unknown key \"polices\"; did you mean \"policies\"?\n"},
    {"unknown key without a near one", "zzzzzzz: 1\n", "1:1: unknown key \"zzzzzzz\"\n"},
    {"unknown key in a section", "relay: { bacth: 5 }\n",
     "1:10: unknown key \"bacth\" in relay; did you mean \"batch\"?\n"},
    {"unknown key in a policy",
     "policies:\n"
     "  orders:\n"
     "    max_atempts: 3\n",
     "3:5: unknown key \"max_atempts\" in policy \"orders\"; did you mean \"max_attempts\"?\n"},
    {"unknown key in a nested section",
     "policies:\n"
     "  p:\n"
     "    backoff: { bas: 1s }\n",
     "3:16: unknown key \"bas\" in backoff of policy \"p\"; did you mean \"base\"?\n"},
    {"unknown key in a class",
     "policies:\n"
     "  p:\n"
     "    classes: { auth: { pause: 3 } }\n",
     "3:24: unknown key \"pause\" in classes.auth of policy \"p\"\n"},
    {"unknown class",
     "policies:\n"
     "  p:\n"
     "    classes: { rate_limits: { } }\n",
     "3:16: unknown key \"rate_limits\" in classes of policy \"p\"; did you mean \"rate_limit\"?\n"},
    {"unknown key in a rule",
     "policies:\n"
     "  p:\n"
     "    classify:\n"
     "      - { match: 409, clas: permanent, class: auth }\n",
     "4:23: unknown key \"clas\" in classify rule 1 of policy \"p\"; did you mean \"class\"?\n"},
    {"unknown key in a destination's section",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", signs: { secret: x } }\n",
     "3:40: unknown key \"signs\" in http of destination \"d\"; did you mean \"sign\"?\n"},
    {"unknown key in a route", "routes: [{ event_type: x, destinations: y }]\n",
     "1:10: route 1 needs \"destination\", for example destination: billing\n"
     "1:27: unknown key \"destinations\" in route 1; did you mean \"destination\"?\n"},
    {"a hidden option is no key",
     "policies:\n"
     "  p:\n"
     "    jitter: { kind: full }\n",
     "3:15: unknown key \"kind\" in jitter of policy \"p\"\n"},
    {"section is a list", "relay: [1]\n",
     "1:8: \"relay\" must be a mapping such as { batch: 500 }, not a list\n"},
    {"section is a scalar", "relay: 5\n",
     "1:8: \"relay\" must be a mapping such as { batch: 500 }, not one value\n"},
    {"section with a scalar form is a list", "store: [a]\n",
     "1:8: \"store\" must be a text, or a mapping such as { url: sqlite:hikyaku.db }, not a list\n"},
    {"map is a list", "policies: [a]\n",
     "1:11: \"policies\" must be a mapping such as { orders: { max_attempts: 10 } }, not a list\n"},
    {"map is a scalar", "destinations: x\n",
     "1:15: \"destinations\" must be a mapping such as { billing: { http: { url: https://billing.example/hooks } } }, not one value\n"},
    {"list is a mapping", "routes: { a: b }\n",
     "1:9: \"routes\" must be a list such as [{ event_type: \"Order*\", destination: billing }], not a mapping\n"},
    {"item of a map is a scalar", "policies: { p: 5 }\n",
     "1:16: policy \"p\" must be a mapping such as { preset: standard, max_attempts: 10 }, not one value\n"},
    {"item of a list is a scalar", "routes: [5]\n",
     "1:10: route 1 must be a mapping such as { event_type: \"Order*\", destination: billing }, not one value\n"},
    {"item of a list is empty",
     "routes:\n"
     "  -\n",
     "2:4: route 1 is empty\n"},
    {"scalar is a list", "relay: { batch: [1] }\n",
     "1:17: \"batch\" must be a whole number such as 500, not a list\n"},
    {"scalar is a mapping", "default_policy: { a: b }\n",
     "1:17: \"default_policy\" must be a name such as standard, not a mapping\n"},
    {"scalar is empty",
     "relay:\n"
     "  batch:\n",
     "2:9: \"batch\" must be a whole number such as 500, not empty\n"},
    {"scalar is null", "relay: { lease: ~ }\n",
     "1:17: \"lease\" must be a duration such as 30s, not empty\n"},
    {"number is a word", "relay: { batch: many }\n",
     "1:17: \"batch\" must be a whole number such as 500, not \"many\"\n"},
    {"number is negative", "relay: { batch: -1 }\n",
     "1:17: \"batch\" must be a whole number such as 500, not \"-1\"\n"},
    {"number has a fraction", "relay: { batch: 1.5 }\n",
     "1:17: \"batch\" must be a whole number such as 500, not \"1.5\"\n"},
    {"number is below its range", "relay: { batch: 0 }\n",
     "1:17: \"batch\" must be from 1 to 10000, not \"0\"\n"},
    {"number is above its range", "relay: { batch: 10001 }\n",
     "1:17: \"batch\" must be from 1 to 10000, not \"10001\"\n"},
    {"number does not fit in 64 bits", "relay: { batch: 99999999999999999999 }\n",
     "1:17: \"batch\" must be from 1 to 10000, not \"99999999999999999999\"\n"},
    {"duration without a unit", "relay: { lease: 30 }\n",
     "1:17: \"lease\" must be a duration such as 30s, not \"30\": its unit is missing (ms, s, m, h, d or w)\n"},
    {"duration out of range", "relay: { lease: 2h }\n",
     "1:17: \"lease\" must be from 1s to 1h, not \"2h\"\n"},
    {"duration is a word", "retention: { sent: forever }\n",
     "1:20: \"sent\" must be a duration such as 24h, or never, not \"forever\"\n"},
    {"open dead letters deleted at once", "retention: { dead: 0s }\n",
     "1:20: \"dead\" would delete open dead letters within a day: give it at least 1d, or \"never\"; \"purge_open: true\" "
     "beside it allows less\n"},
    {"open dead letters deleted soon, in so many words that they do not count",
     "retention: { dead: 23h, purge_open: false }\n",
     "1:20: \"dead\" would delete open dead letters within a day: give it at least 1d, or \"never\"; \"purge_open: true\" "
     "beside it allows less\n"},
    {"an audit that is not kept", "retention: { dead: 1d, audit: 0 }\n",
     "1:31: \"audit\" must keep rows for at least 1d, or \"never\" delete them\n"},
    {"size with a wrong unit", "relay: { max_payload: 1Mib }\n",
     "1:23: \"max_payload\" must be a size such as 1MiB, not \"1Mib\"\n"},
    {"size out of range", "relay: { max_payload: 2GiB }\n",
     "1:23: \"max_payload\" must be from 1B to 1GiB, not \"2GiB\"\n"},
    {"payload above the batch", "relay: { max_payload: 8MiB }\n",
     "1:23: \"max_payload\" must not be above \"batch_bytes\": one message must fit in a batch\n"},
    {"enum with a slip", "relay: { history: failure }\n",
     "1:19: \"history\" must be one of failures, all, none, not \"failure\"; did you mean \"failures\"?\n"},
    {"bool as yes",
     "policies:\n"
     "  p:\n"
     "    backoff: { fast_first: yes }\n",
     "3:28: \"fast_first\" must be true or false, not \"yes\": write true\n"},
    {"bool as off",
     "policies:\n"
     "  p:\n"
     "    classify: [{ match: 409, class: auth, pause: off }]\n",
     "3:50: \"pause\" must be true or false, not \"off\": write false\n"},
    {"bool as a word",
     "policies:\n"
     "  p:\n"
     "    classes: { auth: { charge: maybe } }\n",
     "3:32: \"charge\" must be true or false, not \"maybe\"\n"},
    {"rate without a unit",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    limits: { rate: 100 }\n",
     "4:21: \"rate\" must be a rate such as 100/s, not \"100\"\n"},
    {"rate of nothing",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    limits: { rate: 0/s }\n",
     "4:21: \"rate\" must be from 0.0001/s to 1000000/s, not \"0/s\"\n"},
    {"burst without a rate",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    limits: { burst: 5 }\n",
     "4:15: \"burst\" needs \"rate\": without one there is nothing to save up\n"},
    {"store of another kind", "store: oracle://x\n",
     "1:8: \"store\" must be sqlite:PATH or postgres://…: there is no store of another kind\n"},
    {"store that many have", "store: mysql://u:p@h/d\n",
     "1:8: \"store\" must be sqlite:PATH or postgres://…: there is no store of another kind\n"},
    {"store without a file", "store: \"sqlite:\"\n", "1:8: \"store\" names no file behind sqlite:\n"},
    {"schema is no SQL name", "store: { url: sqlite:a, schema: a-b }\n",
     "1:33: \"schema\" must be letters, digits and underscores, and begin with no digit\n"},
    {"listen without a port", "admin: { listen: 127.0.0.1 }\n",
     "1:18: \"listen\" must be an address and a port such as 127.0.0.1:8189 or [::1]:8189\n"},
    {"listen with a wrong port", "admin: { listen: \"127.0.0.1:99999\" }\n",
     "1:18: \"listen\" must be an address and a port such as 127.0.0.1:8189 or [::1]:8189\n"},
    {"listen beyond this machine", "admin: { listen: \"0.0.0.0:8189\" }\n",
     "1:18: \"listen\" must be a loopback address, or have \"auth: tokens\" and \"tls\" with cert and key (or terminated, with "
     "trusted_proxies) beside it; \"health_listen\" may be reached from elsewhere without them\n"},
    {"listen on a name", "admin: { health_listen: \"relay.example:8190\" }\n",
     "1:25: \"health_listen\" must be an address and a port such as 127.0.0.1:8189 or [::1]:8189\n"},
    {"relay name with a space", "relay: { name: \"a b\" }\n",
     "1:16: \"name\" must be a name such as relay-1, not \"a b\"\n"},
    {"policy with a bad name", "policies: { -x: {} }\n",
     "1:13: \"-x\" is no name for a policy: use up to 63 letters, digits, _ . and -, and begin with no . or -\n"},
    {"destination with a bad name", "destinations: { \"a b\": { http: { url: \"https://a/\" } } }\n",
     "1:17: \"a b\" is no name for a destination: use up to 63 letters, digits, _ . and -, and begin with no . or -\n"},
    {"default policy that is not there",
     "policies: { orders: {} }\n"
     "default_policy: order\n",
     "2:17: there is no policy \"order\"; did you mean \"orders\"?\n"},
    {"default policy that is nothing like another", "default_policy: zzz\n",
     "1:17: there is no policy \"zzz\"\n"},
    {"preset that is not there",
     "policies:\n"
     "  p:\n"
     "    preset: standart\n",
     "3:13: there is no preset \"standart\"; choose one of standard, sync-pipeline, azure-exponential, azure-linear, cloud-tasks, standard-webhooks; did you mean \"standard\"?\n"},
    {"custom that is not registered",
     "policies:\n"
     "  p:\n"
     "    custom: mine\n",
     "3:13: no custom policy is registered as \"mine\"\n"},
    {"backoff kind that is not there",
     "policies:\n"
     "  p:\n"
     "    backoff: { kind: exponentiel }\n",
     "3:22: \"kind\" must be one of fixed, linear, exponential, list, cloud-tasks, azure-exponential, azure-linear, not \"exponentiel\"; did you mean \"exponential\"?\n"},
    {"factor on a fixed backoff",
     "policies:\n"
     "  p:\n"
     "    backoff: { kind: fixed, factor: 2 }\n",
     "3:29: \"factor\" means nothing to backoff kind fixed\n"},
    {"min on an exponential backoff",
     "policies:\n"
     "  p:\n"
     "    backoff: { min: 1s }\n",
     "3:16: \"min\" means nothing to backoff kind exponential: give the kind as well\n"},
    {"max_doublings on an azure backoff",
     "policies:\n"
     "  p:\n"
     "    preset: azure-linear\n"
     "    backoff: { max_doublings: 3 }\n",
     "4:16: \"max_doublings\" means nothing to backoff kind azure-linear: give the kind as well\n"},
    {"base on a list",
     "policies:\n"
     "  p:\n"
     "    preset: standard-webhooks\n"
     "    backoff: { base: 3s }\n",
     "4:16: \"base\" means nothing to backoff kind list: give the kind as well\n"},
    {"waits without the kind",
     "policies:\n"
     "  p:\n"
     "    backoff: { waits: [1s] }\n",
     "3:16: \"waits\" means nothing to backoff kind exponential: give the kind as well\n"},
    {"delta on an exponential backoff",
     "policies:\n"
     "  p:\n"
     "    backoff: { delta: 1s }\n",
     "3:16: \"delta\" means nothing to backoff kind exponential: give the kind as well\n"},
    {"delta and base",
     "policies:\n"
     "  p:\n"
     "    backoff: { kind: azure-linear, delta: 1s, base: 2s }\n",
     "3:36: \"delta\" is another name of \"base\": give one of them\n"},
    {"list without waits",
     "policies:\n"
     "  p:\n"
     "    backoff: { kind: list }\n",
     "3:14: backoff.waits must hold 1 to 32 waits, not 0\n"},
    {"empty waits",
     "policies:\n"
     "  p:\n"
     "    backoff: { kind: list, waits: [] }\n",
     "3:35: \"waits\" is empty: give at least 1\n"},
    {"a bad wait among good ones",
     "policies:\n"
     "  p:\n"
     "    backoff: { kind: list, waits: [1s, 2, 3s] }\n",
     "3:40: item 2 of \"waits\" must be a duration such as 30s, not \"2\": its unit is missing (ms, s, m, h, d or w)\n"},
    {"too many waits",
     "policies:\n"
     "  p:\n"
     "    backoff: { kind: list, waits: [1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s] }\n",
     "3:35: \"waits\" holds 33 entries: at most 32 are possible\n"},
    {"factor below 1",
     "policies:\n"
     "  p:\n"
     "    backoff: { factor: 0.5 }\n",
     "3:24: \"factor\" must be from 1 to 1000, not \"0.5\"\n"},
    {"base of nothing",
     "policies:\n"
     "  p:\n"
     "    backoff: { base: 0s }\n",
     "3:22: \"base\" must be from 1ms to 100 years, not \"0s\"\n"},
    {"azure kind with jitter",
     "policies:\n"
     "  p:\n"
     "    backoff: { kind: azure-exponential }\n"
     "    jitter: full\n",
     "4:13: backoff kind azure-exponential draws each wait itself (±20 %): jitter must be none, or left out\n"},
    {"azure preset with jitter",
     "policies:\n"
     "  p:\n"
     "    preset: azure-linear\n"
     "    jitter: { ratio: 0.2 }\n",
     "4:13: backoff kind azure-linear draws each wait itself (±20 %): jitter must be none, or left out\n"},
    {"azure kind of a class with jitter",
     "policies:\n"
     "  p:\n"
     "    classes: { transient: { backoff: { kind: azure-linear }, jitter: equal } }\n",
     "3:70: backoff kind azure-linear draws each wait itself (±20 %): jitter must be none, or left out\n"},
    {"jitter that is not there",
     "policies:\n"
     "  p:\n"
     "    jitter: some\n",
     "3:13: \"jitter\" must be one of none, full, equal, decorrelated, or a mapping such as { ratio: 0.2 }, not \"some\"; did you mean \"none\"?\n"},
    {"jitter ratio above 1",
     "policies:\n"
     "  p:\n"
     "    jitter: { ratio: 1.5 }\n",
     "3:22: \"ratio\" must be from 0 to 1, not \"1.5\"\n"},
    {"jitter of both forms",
     "policies:\n"
     "  p:\n"
     "    jitter: { ratio: 0.5, add: 1s }\n",
     "3:13: jitter is either { ratio: … } or { add: … }, not both\n"},
    {"a policy that never ends",
     "policies:\n"
     "  p:\n"
     "    max_attempts: unlimited\n"
     "    max_elapsed: never\n",
     "2:3: policy p would retry for ever: set max_attempts or max_elapsed\n"},
    {"a class that never ends",
     "policies:\n"
     "  p:\n"
     "    max_elapsed: never\n"
     "    classes: { rate_limit: { charge: false } }\n",
     "2:3: policy p would retry class rate_limit for ever: set its max_attempts, charge: true, or a max_elapsed that ends the policy\n"},
    {"class set up but not retried",
     "policies:\n"
     "  p:\n"
     "    classes: { auth: { max_attempts: 3 } }\n",
     "3:24: class auth is not retried: add \"action: retry\", or drop \"max_attempts\"\n"},
    {"rule without a match",
     "policies:\n"
     "  p:\n"
     "    classify: [{ class: permanent }]\n",
     "3:16: classify rule 1 of policy \"p\" needs \"match\", for example match: 409\n"},
    {"rule without a class",
     "policies:\n"
     "  p:\n"
     "    classify: [{ match: 409 }]\n",
     "3:16: classify rule 1 of policy \"p\" needs \"class\", for example class: permanent\n"},
    {"rule that matches nothing",
     "policies:\n"
     "  p:\n"
     "    classify: [{ match: 4x9, class: permanent }]\n",
     "3:25: \"4x9\" matches nothing: write a status (404, 5xx, 500-599), a fault (timeout, dns, tls …), a reason code (HTTP_422) or *\n"},
    {"rule to a class that is not there",
     "policies:\n"
     "  p:\n"
     "    classify: [{ match: 409, class: perm }]\n",
     "3:37: \"class\" must be one of transient, rate_limit, auth, permanent, unknown, success, not \"perm\"\n"},
    {"rule with a bad reason",
     "policies:\n"
     "  p:\n"
     "    classify: [{ match: 409, class: auth, reason: card-expired }]\n",
     "3:51: \"reason\" must be a reason code: capitals, digits and underscores, such as CARD_EXPIRED\n"},
    {"rule with text but no header",
     "policies:\n"
     "  p:\n"
     "    classify: [{ match: 409, class: auth, contains: x }]\n",
     "3:43: \"contains\" needs \"header\": which header holds it?\n"},
    {"rule with a bad header name",
     "policies:\n"
     "  p:\n"
     "    classify: [{ match: 409, class: auth, header: \"a b\" }]\n",
     "3:51: \"header\" must be an HTTP header's name: letters, digits and !#$%&'*+-.^_`|~\n"},
    {"rule that makes all a success",
     "policies:\n"
     "  p:\n"
     "    classify: [{ match: \"*\", class: success }]\n",
     "3:16: a rule that makes everything a success would lose messages\n"},
    {"breaker with a word that is not off",
     "policies:\n"
     "  p:\n"
     "    breaker: on\n",
     "3:14: \"breaker\" must be off, or a mapping such as { failures: 5, window: 30s }, not \"on\"\n"},
    {"breaker without a rule",
     "policies:\n"
     "  p:\n"
     "    breaker: { failures: 0 }\n",
     "3:14: failures, ratio: one of the two must be set\n"},
    {"destination's breaker without a rule",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    breaker: { failures: 0 }\n",
     "4:14: failures, ratio: one of the two must be set\n"},
    {"breaker is a list",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    breaker: [5]\n",
     "4:14: \"breaker\" must be off, or a mapping such as { failures: 5, window: 30s, open: 10s }, not a list\n"},
    {"destination without a sink", "destinations: { d: { policy: standard } }\n",
     "1:17: destination \"d\" needs \"http\" or \"null\" or \"amqp\" or \"nats\" or \"redis\" or \"mqtt\" or \"kafka\" or \"sqs\" or \"sns\" or \"eventbridge\" or \"kinesis\" or \"pubsub\", for example http: { url: https://billing.example/hooks }\n"},
    {"sqs without a region", "destinations: { d: { sqs: { queue_url: \"https://sqs.example/1/q\" } } }\n",
     "1:22: sqs of destination \"d\" needs \"region\", for example region: ap-northeast-1\n"},
    {"sqs with half a key",
     "destinations: { d: { sqs: { queue_url: \"https://sqs.example/1/q\", region: r, access_key_id: a } } }\n",
     "1:78: \"access_key_id\" needs \"secret_access_key\" as well\n"},
    {"kafka without brokers", "destinations: { d: { kafka: { topic: t } } }\n",
     "1:22: kafka of destination \"d\" needs \"brokers\", for example brokers: k1:9092,k2:9092\n"},
    {"a broker without a port", "destinations: { d: { kafka: { brokers: \"k1:9092,k2\", topic: t } } }\n",
     "1:40: \"brokers\" must be a list of host:port, separated by commas, such as k1:9092,k2:9092\n"},
    {"a topic with a blank", "destinations: { d: { kafka: { brokers: \"k1:9092\", topic: \"a b\" } } }\n",
     "1:58: \"topic\" may hold letters, digits, '.', '_' and '-', and {event_type}, {message_key}, {destination}\n"},
    {"a topic of no field",
     "destinations: { d: { kafka: { brokers: \"k1:9092\", topic: \"x.{payload}\" } } }\n",
     "1:58: \"topic\" may hold {event_type}, {message_key} and {destination}, and no other braces\n"},
    {"a certificate without tls",
     "destinations: { d: { kafka: { brokers: \"k1:9092\", topic: t, ca_file: ca.pem } } }\n",
     "1:70: \"ca_file\" needs \"tls: true\" beside it\n"},
    {"a certificate without its key",
     "destinations: { d: { kafka: { brokers: \"k1:9092\", topic: t, tls: true, cert_file: c.pem } } }\n",
     "1:83: \"cert_file\" and \"key_file\" need each other\n"},
    {"sasl without a password",
     "destinations: { d: { kafka: { brokers: \"k1:9092\", topic: t, tls: true, sasl: { mechanism: PLAIN, user: u } } } }\n",
     "1:72: PLAIN and SCRAM need \"user\" and \"password\"\n"},
    {"a token for scram",
     "destinations: { d: { kafka: { brokers: \"k1:9092\", topic: t, tls: true, sasl: { mechanism: SCRAM-SHA-256, user: u, password: p, token: x } } } }\n",
     "1:72: \"token\", \"token_file\" and \"oauth2\" are for OAUTHBEARER\n"},
    {"oauthbearer without a token",
     "destinations: { d: { kafka: { brokers: \"k1:9092\", topic: t, tls: true, sasl: { mechanism: OAUTHBEARER } } } }\n",
     "1:72: OAUTHBEARER needs one of \"token\", \"token_file\" and \"oauth2\"\n"},
    {"oauthbearer with two tokens",
     "destinations: { d: { kafka: { brokers: \"k1:9092\", topic: t, tls: true, sasl: { mechanism: OAUTHBEARER, token: x, oauth2: { token_url: \"https://a.example/\", client_id: c, client_secret: s } } } } }\n",
     "1:72: OAUTHBEARER needs one of \"token\", \"token_file\" and \"oauth2\"\n"},
    {"batches over HTTP/2",
     "destinations: { d: { http: { url: \"https://a.example/\", batch: 10, version: 2 } } }\n",
     "1:77: \"version: 2\" cannot be used with \"batch\"\n"},
    {"a short topic of pubsub", "destinations: { d: { pubsub: { project: shop-prod, topic: x } } }\n",
     "1:59: \"topic\" must be at least 3 bytes long, not 1\n"},
    {"pubsub without a topic", "destinations: { d: { pubsub: { project: shop } } }\n",
     "1:22: pubsub of destination \"d\" needs \"topic\", for example topic: orders\n"},
    {"the whole name of a topic",
     "destinations: { d: { pubsub: { project: shop, topic: projects/shop/topics/orders } } }\n",
     "1:54: \"topic\" must be the id of a topic such as orders, without projects/…/topics/\n"},
    {"an emulator with credentials",
     "destinations: { d: { pubsub: { project: shop, topic: orders, emulator: \"http://127.0.0.1:8085\", credentials: x } } }\n",
     "1:62: give \"emulator\" or \"credentials\", not both\n"},
    {"two log-ins of pubsub",
     "destinations: { d: { pubsub: { project: shop, topic: orders, credentials: x, credentials_file: k.json } } }\n",
     "1:62: give \"credentials\" or \"credentials_file\", not both\n"},
    {"destination with two sinks",
     "destinations:\n"
     "  d: { \"null\": {}, http: { url: \"https://a.example/\" } }\n",
     "2:8: give \"http\" or \"null\", not both\n"},
    {"destination with two sinks, one of them wrong",
     "destinations:\n"
     "  d:\n"
     "    http: { url: x }\n"
     "    null: { latency: 2h }\n",
     "3:18: \"url\" must begin with http:// or https://\n"
     "4:5: give \"http\" or \"null\", not both\n"
     "4:22: \"latency\" must be from 0s to 1h, not \"2h\"\n"},
    {"null with a URL", "destinations: { d: { \"null\": { url: \"https://a.example/\" } } }\n",
     "1:32: unknown key \"url\" in null of destination \"d\"\n"},
    {"null is a text", "destinations: { d: { \"null\": yes } }\n",
     "1:30: \"null\" must be a mapping such as { latency: 5ms }, not one value\n"},
    {"destination with a policy that is not there",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    policy: standrad\n",
     "4:13: there is no policy \"standrad\"; did you mean \"standard\"?\n"},
    {"HTTP/2 to a URL that differs",
     "destinations: { d: { http: { url: \"https://a.example/{event_type}\", version: 2 } } }\n",
     "1:78: \"version: 2\" needs a URL that is the same for all messages\n"},
    {"HTTP/2 to a socket",
     "destinations: { d: { http: { url: \"https://a.example/\", socket: /run/s, version: 2 } } }\n",
     "1:82: \"version: 2\" cannot be used with \"socket\"\n"},
    {"HTTP/3", "destinations: { d: { http: { url: \"https://a.example/\", version: 3 } } }\n",
     "1:66: \"version\" must be from 1 to 2, not \"3\"\n"},
    {"http without a URL", "destinations: { d: { http: { method: PUT } } }\n",
     "1:22: http of destination \"d\" needs \"url\", for example url: https://billing.example/hooks\n"},
    {"URL with another scheme", "destinations: { d: { http: { url: \"ftp://a.example/\" } } }\n",
     "1:35: \"url\" must begin with http:// or https://\n"},
    {"URL without a host", "destinations: { d: { http: { url: \"https:///x\" } } }\n",
     "1:35: \"url\" has no host\n"},
    {"URL with a user", "destinations: { d: { http: { url: \"https://u:p@a.example/\" } } }\n",
     "1:35: \"url\" must not hold a user name or password: use auth\n"},
    {"URL with a fragment", "destinations: { d: { http: { url: \"https://a.example/#x\" } } }\n",
     "1:35: \"url\" must not have a fragment (#…): it is never sent\n"},
    {"URL with a space", "destinations: { d: { http: { url: \"https://a.example/a b\" } } }\n",
     "1:35: \"url\" must not hold spaces, control characters, quotes or other characters that a URL escapes\n"},
    {"URL with a bad port", "destinations: { d: { http: { url: \"https://a.example:0/\" } } }\n",
     "1:35: \"url\" has a host or port that is not valid\n"},
    {"URL with a short IPv4 address", "destinations: { d: { http: { url: \"http://127.1/\" } } }\n",
     "1:35: \"url\" has a host or port that is not valid\n"},
    {"URL with a broken IPv6 address", "destinations: { d: { http: { url: \"http://[::1/\" } } }\n",
     "1:35: \"url\" has a host or port that is not valid\n"},
    {"method that is not there",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", method: GET }\n",
     "3:48: \"method\" must be one of POST, PUT, PATCH, not \"GET\"\n"},
    {"header with a bad name",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", headers: { \"a b\": c } }\n",
     "3:51: \"a b\" is no name for a header: it must be a header's name such as X-Tenant\n"},
    {"header with a line break",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", headers: { A: \"b\\r\\nC: d\" } }\n",
     "3:54: header \"A\" must not hold line breaks or other control characters\n"},
    {"header that the relay writes",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", headers: { Content-Length: 5 } }\n",
     "3:51: header \"Content-Length\" is written by the relay itself\n"},
    {"header with a name in braces that stands for nothing",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", headers: { A: \"{event_typ}\", B: \"{event_type}\", C: \"{}\", "
     "D: '{\"a\":1}' } }\n",
     "3:54: header \"A\": this stands for no field of a message; {event_type}, {correlation_id}, {attempt}, "
     "{idempotency_key} and {traceparent} do\n"},
    {"header twice in two cases",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", headers: { X-A: 1, x-a: 2 } }\n",
     "3:59: header \"x-a\" is given twice: case makes no difference\n"},
    {"header with a list",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", headers: { A: [b] } }\n",
     "3:54: header \"A\" must be a text, not a list\n"},
    {"Authorization beside auth",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", headers: { Authorization: x }, auth: { bearer: y } }\n",
     "3:51: header \"Authorization\" is given twice: \"auth\" writes it, too\n"},
    {"sign without a secret",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", sign: { } }\n",
     "3:40: http.sign of destination \"d\" needs \"secret\" or \"secrets\", for example secret: \"${BILLING_SECRET}\"\n"},
    {"sign with an empty secret",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", sign: { secret: \"\" } }\n",
     "3:56: \"secret\" must not be empty\n"},
    {"sign with both forms",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", sign: { secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSw, secrets: [whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD] } }\n",
     "3:96: give \"secret\" or \"secrets\", not both\n"},
    {"secrets that cannot sign",
     "destinations:\n"
     "  a: { http: { url: \"https://a.example/\", sign: { secret: hunter2 } } }\n"
     "  b: { http: { url: \"https://a.example/\", sign: { secret: \"whsec_${SECRET}\" } } }\n"
     "  c:\n"
     "    http:\n"
     "      url: \"https://a.example/\"\n"
     "      sign:\n"
     "        secrets:\n"
     "          - whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSw\n"
     "          - whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSwAA\n"
     "          - whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
     "          - whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2La\n"
     "          - whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjS-\n"
     "          - whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
     "2:59: \"secret\" must be whsec_ and base64 of 24 to 64 random bytes: echo whsec_$(openssl rand -base64 32) makes one\n"
     "3:59: \"secret\" must be whsec_ and base64 of 24 to 64 random bytes: echo whsec_$(openssl rand -base64 32) makes one\n"
     "12:13: item 4 of \"secrets\" must be whsec_ and base64 of 24 to 64 random bytes: echo whsec_$(openssl rand -base64 32) makes one\n"
     "13:13: item 5 of \"secrets\" must be whsec_ and base64 of 24 to 64 random bytes: echo whsec_$(openssl rand -base64 32) makes one\n"
     "14:13: item 6 of \"secrets\" must be whsec_ and base64 of 24 to 64 random bytes: echo whsec_$(openssl rand -base64 32) makes one\n"},
    {"auth without a form",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", auth: { } }\n",
     "3:40: http.auth of destination \"d\" needs \"basic\" or \"bearer\" or \"oauth2\", for example basic: { user: relay, password: \"${BILLING_PASSWORD}\" }\n"},
    {"auth with both forms",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", auth: { basic: { user: a, password: b }, bearer: c } }\n",
     "3:81: give \"basic\" or \"bearer\", not both\n"},
    {"basic without a password",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", auth: { basic: { user: a } } }\n",
     "3:48: http.auth.basic of destination \"d\" needs \"password\", for example password: \"${BILLING_PASSWORD}\"\n"},
    {"basic user with a colon",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", auth: { basic: { user: \"a:b\", password: c } } }\n",
     "3:63: \"user\" must not hold a colon: it would end the name\n"},
    {"certificate without a key",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", cert_file: a.pem }\n",
     "3:40: \"cert_file\" needs \"key_file\" as well\n"},
    {"key without a certificate",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\", key_file: a.pem }\n",
     "3:40: \"key_file\" needs \"cert_file\" as well\n"},
    {"allow with a name",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    allow: [localhost]\n",
     "4:13: item 1 of \"allow\" must be an address range such as 10.0.0.0/8 or fd00::/8\n"},
    {"schema of a file", "store: { url: sqlite:x.db, schema: s, prefix: p_ }\n",
     "1:36: \"schema\" is for database servers: a file has its tables for itself\n"},
    {"prefix of a file", "store: { prefix: p_ }\n",
     "1:18: \"prefix\" is for database servers: a file has its tables for itself\n"},
    {"allow with bits behind the prefix",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    allow: [10.0.0.1/8]\n",
     "4:13: item 1 of \"allow\" has bits set behind its prefix: write the range's first address\n"},
    {"allow with a long prefix",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    allow: [10.0.0.0/33, \"fd00::/129\"]\n",
     "4:13: item 1 of \"allow\" must have a prefix from /0 to /32\n"
     "4:26: item 2 of \"allow\" must have a prefix from /0 to /128\n"},
    {"allow with a mapped address",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    allow: [\"::ffff:127.0.0.1\"]\n",
     "4:13: item 1 of \"allow\" must be written as IPv4, without ::ffff:\n"},
    {"allow with a leading zero",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    allow: [010.0.0.0/8, 10.0.0.0/08]\n",
     "4:13: item 1 of \"allow\" must be an address range such as 10.0.0.0/8 or fd00::/8\n"
     "4:26: item 2 of \"allow\" must have a prefix from /0 to /32\n"},
    {"order that is not there",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    order: keys\n",
     "4:12: \"order\" must be one of none, key, not \"keys\"; did you mean \"key\"?\n"},
    {"route to a destination that is not there",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    order: none\n"
     "routes:\n"
     "  - { event_type: A, destination: dd }\n"
     "  - { event_type: B, destination: [d, e] }\n",
     "6:35: there is no destination \"dd\"; did you mean \"d\"?\n"
     "7:39: there is no destination \"e\"\n"},
    {"route without a destination", "routes: [{ event_type: x }]\n",
     "1:10: route 1 needs \"destination\", for example destination: billing\n"},
    {"route to nothing", "routes: [{ event_type: x, destination: [] }]\n",
     "1:40: \"destination\" is empty: give at least 1\n"},
    {"route without an event type",
     "destinations:\n"
     "  d:\n"
     "    http: { url: \"https://a.example/\" }\n"
     "    order: none\n"
     "routes: [{ destination: d }]\n",
     "5:10: route 1 needs \"event_type\", for example event_type: \"Order*\"\n"},
    {"validate that checks nothing", "validate: [{ event_type: x }]\n",
     "1:12: the rule checks nothing: give \"required\", \"json\" or \"max_size\"\n"},
    {"validate that looks into no JSON", "validate: [{ event_type: x, required: [a], json: false }]\n",
     "1:50: \"required\" looks into JSON: json cannot be false\n"},
    {"validate with a bad path", "validate: [{ event_type: x, required: [a..b] }]\n",
     "1:40: item 1 of \"required\" is no path: column 3: the name of a field is expected here\n"},
    {"validate with a type that is none", "validate:\n  - event_type: x\n    required: [id, a.b:int]\n",
     "3:20: item 2 of \"required\" is no path: column 5: a type is expected after the colon: string, number, "
     "integer, boolean, object, array, null or any\n"},
    {"validate with a mapping as a field",
     "validate:\n  - event_type: x\n    required:\n      - id: integer\n",
     "4:9: item 1 of \"required\" must be a text such as order.id:integer, not a mapping\n"},
    {"mask that hides nothing", "masks: [{ event_type: x }]\n",
     "1:9: the mask hides nothing: give \"paths\" or \"headers\"\n"},
    {"mask with empty lists", "masks: [{ paths: [], headers: [] }]\n",
     "1:9: the mask hides nothing: give \"paths\" or \"headers\"\n"},
    {"mask with bad paths and headers",
     "masks:\n"
     "  - paths: [a, \"b[*\", 'c.*']\n"
     "    headers: [x-key, \"x key\"]\n",
     "2:16: item 2 of \"paths\" is no path: column 2: the bracket does not end\n"
     "2:23: item 3 of \"paths\" is no path: column 3: a name that holds *, \\ or \" stands in quotes; [*] is every "
     "element\n"
     "3:22: item 2 of \"headers\" must be an HTTP header's name: letters, digits and !#$%&'*+-.^_`|~\n"},
    {"mask with an unknown key", "masks: [{ path: [a] }]\n",
     "1:11: unknown key \"path\" in mask 1; did you mean \"paths\"?\n"},
    {"auto_redrive that is no bool", "destinations: { d: { \"null\": {}, auto_redrive: yes } }\n",
     "1:48: \"auto_redrive\" must be true or false, not \"yes\": write true\n"},
    {"several errors, in file order",
     "default_policy: orders\n"
     "relay:\n"
     "  batch: 0\n"
     "  lease: 30\n"
     "  colour: red\n"
     "policies:\n"
     "  order:\n"
     "    jitter: fill\n"
     "    max_attempts: ten\n"
     "    max_attempts: 5\n"
     "destinations:\n"
     "  d:\n"
     "    http: { url: gopher://x }\n"
     "    policy: nobody\n"
     "routes:\n"
     "  - { event_type: A, destination: e }\n"
     "retension: {}\n",
     "1:17: there is no policy \"orders\"; did you mean \"order\"?\n"
     "3:10: \"batch\" must be from 1 to 10000, not \"0\"\n"
     "4:10: \"lease\" must be a duration such as 30s, not \"30\": its unit is missing (ms, s, m, h, d or w)\n"
     "5:3: unknown key \"colour\" in relay\n"
     "8:13: \"jitter\" must be one of none, full, equal, decorrelated, or a mapping such as { ratio: 0.2 }, not \"fill\"; did you mean \"full\"?\n"
     "9:19: \"max_attempts\" must be a whole number such as 10, or unlimited, not \"ten\"\n"
     "10:5: duplicate key \"max_attempts\", first given at line 9\n"
     "13:18: \"url\" must begin with http:// or https://\n"
     "14:13: there is no policy \"nobody\"\n"
     "16:35: there is no destination \"e\"\n"
     "17:1: unknown key \"retension\"; did you mean \"retention\"?\n"},
    {"errors of every layer at once",
     "relay: &r { batch: 0 }\n"
     "store: ${NOPE}\n"
     "admin: *r\n"
     "policies: { a: !x { } }\n"
     "default_policy: ${file:nowhere}\n",
     "1:8: anchors and aliases are not supported: write the value out, and put a text that begins with & or * in quotes\n"
     "2:8: environment variable \"NOPE\" is not set, and there is no ${…:-default}\n"
     "3:8: anchors and aliases are not supported: write the value out, and put a text that begins with & or * in quotes\n"
     "4:16: tags are not supported: put a text that begins with ! in quotes\n"
     "5:17: cannot read file \"nowhere\": No such file or directory\n"},
    {"variable that is not set", "store: ${NOPE}\n",
     "1:8: environment variable \"NOPE\" is not set, and there is no ${…:-default}\n"},
    {"variable that is not finished", "store: ${NOPE\n",
     "1:8: ${ without its }: write $${ for a literal ${\n"},
    {"variable without a name", "store: ${}\n",
     "1:8: cannot understand this ${…}: write ${NAME}, ${NAME:-default}, ${file:PATH}, or $${ for a literal ${\n"},
    {"variable in a form that is not known", "store: ${SECRET:?must}\n",
     "1:8: cannot understand this ${…}: write ${NAME}, ${NAME:-default}, ${file:PATH}, or $${ for a literal ${\n"},
    {"variable in a variable", "store: \"${A:-${SECRET}}\"\n",
     "1:8: cannot understand this ${…}: write ${NAME}, ${NAME:-default}, ${file:PATH}, or $${ for a literal ${\n"},
    {"file that is not there", "store: ${file:nowhere}\n",
     "1:8: cannot read file \"nowhere\": No such file or directory\n"},
    {"file that is too large", "store: ${file:large}\n",
     "1:8: cannot read file \"large\": over 65536 bytes\n"},
    {"file that is no text", "store: ${file:binary}\n", "1:8: the value of \"binary\" is not UTF-8 text\n"},
    {"file without a path", "store: \"${file:}\"\n", "1:8: the path \"\" is empty\n"},
    {"variable that is no text", "store: ${LATIN}\n", "1:8: the value of \"LATIN\" is not UTF-8 text\n"},
    {"a secret is never shown",
     "relay: { batch: \"${SECRET}\", history: \"${SECRET}\", name: \"${SECRET} \" }\n"
     "default_policy: ${SECRET}\n",
     "1:17: \"batch\" must be a whole number such as 500, not ***\n"
     "1:39: \"history\" must be one of failures, all, none, not ***\n"
     "1:58: \"name\" must be a name such as relay-1, not ***\n"
     "2:17: there is no policy ***\n"},
    {"a secret is never shown, from a file", "relay: { lease: \"${file:secret}\" }\n",
     "1:17: \"lease\" must be a duration such as 30s, not ***\n"},
    {"a secret preset, rule and custom",
     "policies:\n"
     "  p:\n"
     "    preset: ${SECRET}\n"
     "  q:\n"
     "    custom: ${SECRET}\n"
     "    classify: [{ match: \"${SECRET}\", class: auth }]\n",
     "3:13: there is no preset ***; choose one of standard, sync-pipeline, azure-exponential, azure-linear, cloud-tasks, standard-webhooks\n"
     "5:13: no custom policy is registered as ***\n"
     "6:25: \"match\" came from ${…} and matches nothing\n"},
    {"for ever is told beside other errors of the policy",
     "policies:\n"
     "  a:\n"
     "    max_attempts: unlimited\n"
     "    max_elapsed: never\n"
     "    max_atempts: 3\n"
     "    backoff: { base: 90 }\n"
     "    hint_cap: 0s\n",
     "2:3: policy a would retry for ever: set max_attempts or max_elapsed\n"
     "5:5: unknown key \"max_atempts\" in policy \"a\"; did you mean \"max_attempts\"?\n"
     "6:22: \"base\" must be a duration such as 1s, not \"90\": its unit is missing (ms, s, m, h, d or w)\n"
     "7:15: hint_cap must be above 0 (hints: none turns hints off)\n"},
    {"for ever is not told when it may be the consequence of another error",
     "policies:\n"
     "  a: { preset: cloud-tasks, max_attempts: unlimited, max_elapsed: 24x }\n"
     "  b: { max_attempts: 9, max_elapsed: never, classes: { rate_limit: { charge: maybe } } }\n"
     "  c: { max_attempts: 9, max_elapsed: never, classes: { rate_limit: 3 } }\n"
     "  d: { max_attempts: 9, max_elapsed: never, classes: { rate_limit: { charge: true, backoff: 3 } } }\n",
     "2:67: \"max_elapsed\" must be a duration such as 24h, or never, not \"24x\"\n"
     "3:78: \"charge\" must be true or false, not \"maybe\"\n"
     "4:68: \"rate_limit\" must be a mapping such as { action: retry, max_attempts: 4 }, not one value\n"
     "5:93: \"backoff\" must be a mapping such as { kind: exponential, base: 1s, factor: 2, cap: 1h }, not one value\n"},
    {"jitter that does not fit the backoff",
     "policies:\n"
     "  a: { backoff: { kind: list, waits: [1s] }, jitter: decorrelated }\n"
     "  b: { jitter: decorrelated, classes: { unknown: { backoff: { kind: list, waits: [1s] } } } }\n"
     "  c: { preset: azure-linear, jitter: decorrelated }\n",
     "2:54: decorrelated jitter grows by itself and would use only the first of \"waits\": take another jitter for backoff kind list\n"
     "3:61: decorrelated jitter grows by itself and would use only the first of \"waits\": take another jitter for backoff kind list\n"
     "4:38: backoff kind azure-linear draws each wait itself (±20 %): jitter must be none, or left out\n"},
    {"duplicate key",
     "relay: {}\n"
     "admin: {}\n"
     "relay: {}\n",
     "3:1: duplicate key \"relay\", first given at line 1\n"},
    {"duplicate policy",
     "policies:\n"
     "  a: {}\n"
     "  a: { max_attempts: x }\n",
     "3:3: duplicate key \"a\", first given at line 2\n"},
    {"alias", "relay: *x\n",
     "1:8: anchors and aliases are not supported: write the value out, and put a text that begins with & or * in quotes\n"},
    {"anchor", "relay: &x { batch: 5 }\n",
     "1:8: anchors and aliases are not supported: write the value out, and put a text that begins with & or * in quotes\n"},
    {"merge key", "relay: { <<: { batch: 5 } }\n",
     "1:10: merge keys (<<) are not supported, write the values out\n"},
    {"tag", "relay: !!python/object { batch: 5 }\n",
     "1:8: tags are not supported: put a text that begins with ! in quotes\n"},
    {"second document",
     "relay: {}\n"
     "---\n"
     "relay: {}\n",
     "2:1: a second document: only one is read\n"},
    {"tab as indentation",
     "relay:\n"
     "\tbatch: 5\n",
     "2:1: invalid YAML: found character that cannot start any token (a tab: indent with spaces)\n"},
    {"a star without quotes", "routes: [{ event_type: *, destination: d }]\n",
     "1:25: invalid YAML: did not find expected alphabetic or numeric character, while scanning an alias that begins at 1:24 (put a text that begins with * or & in quotes)\n"},
    {"a variable in a flow without quotes", "destinations: { d: { http: { url: ${URL} } } }\n",
     "1:36: invalid YAML: did not find expected ',' or '}', while parsing a flow mapping that begins at 1:28 (inside { } and [ ] put ${…} in quotes)\n"},
    {"flow that does not end", "relay: { batch: 5\n",
     "2:1: invalid YAML: did not find expected ',' or '}', while parsing a flow mapping that begins at 1:8\n"},
    {"bad indentation",
     "relay:\n"
     "  batch: 5\n"
     " lease: 3s\n",
     "3:2: invalid YAML: did not find expected key, while parsing a block mapping that begins at 1:1\n"},
};

#endif
