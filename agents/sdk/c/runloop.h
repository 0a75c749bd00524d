/* runloop.h is the guest half of the interface runloop_v1 of rlp, for C and C++.
 *
 * It is one header that needs libc and nothing else. Every function here that
 * reaches the host is exactly one import, and the linker keeps an import only if
 * something calls it: the imports of a module are the list of what it could ever
 * do. Files, arguments, variables and standard input are libc's as usual, at the
 * host's absolute paths.
 *
 *     clang --target=wasm32-wasi --sysroot=/usr -O2 -o agent.wasm main.c
 *
 * with Debian's clang, lld, wasi-libc and libclang-rt-14-dev-wasm32; the clang of
 * wasi-sdk needs no --sysroot.
 *
 * Each call returns 0, or the number of an error and, where err is not NULL, what
 * the host says of it. A denial is an error and never the end of the agent: say
 * what could not be done, do the rest, exit 0.
 *
 *     rl_error err;
 *     if (rl_kb_put("contacts", id, value, size, NULL, &err))
 *         printf("%s is not kept: %s\n", id, err.why);
 *
 * A response is an rl_text that the caller frees with free(text.data); after an
 * error it is empty. NULL for it throws the response away. */
#ifndef RUNLOOP_H
#define RUNLOOP_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of errors, which are WASI's. */
enum {
  RL_TOO_BIG = 1,      /* the request is larger than the host takes */
  RL_DENIED = 2,       /* the policy does not allow it */
  RL_CONFLICT = 6,     /* another revision is stored */
  RL_BUDGET = 19,      /* a budget, rate or limit is used up */
  RL_FAULT = 21,       /* a pointer outside of the memory */
  RL_INVALID = 28,     /* a malformed request */
  RL_IO = 29,          /* the host could not do it */
  RL_NOT_EXIST = 44,   /* no such thing */
  RL_NO_SYS = 52,      /* the host does not know this call */
  RL_UNAVAILABLE = 58, /* not available here */
  RL_TIMEOUT = 73      /* took too long */
};

/* An rl_text is bytes, with a NUL behind them that size does not count. */
typedef struct {
  char *data;
  size_t size;
} rl_text;

/* An rl_error is what the host answered instead of a response. What does not fit
 * is cut. */
typedef struct {
  int number;           /* such as RL_DENIED */
  const char *op;       /* the import, such as "kb_put" */
  char capability[256]; /* what was required, such as "kb:write:contacts" */
  char reason[64];      /* the audit log's word, such as "domain_not_permitted" */
  char hint[512];       /* what could be done about it */
  char why[640];        /* in a few words: "denied (domain_not_permitted)" */
} rl_error;

/* ---- JSON: what requests and responses need of it ---- */

/* rl_add appends bytes to a text; 0, or RL_IO where there is no memory. */
static inline int rl_add(rl_text *t, const char *bytes, size_t size) {
  char *data = (char *)realloc(t->data, t->size + size + 1);
  if (!data) return RL_IO;
  if (size) memcpy(data + t->size, bytes, size);
  t->data = data;
  t->size += size;
  data[t->size] = 0;
  return 0;
}

/* rl_add_string appends a JSON string, quotes included. The bytes are UTF-8. */
static inline int rl_add_string(rl_text *t, const char *bytes, size_t size) {
  static const char hex[] = "0123456789abcdef";
  int failed = rl_add(t, "\"", 1);
  for (size_t i = 0; i < size && !failed; i++) {
    unsigned char c = (unsigned char)bytes[i];
    char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    if (c == '"' || c == '\\') {
      escape[1] = (char)c;
      failed = rl_add(t, escape, 2);
    } else if (c < 0x20) {
      failed = rl_add(t, escape, 6);
    } else {
      failed = rl_add(t, bytes + i, 1);
    }
  }
  return failed ? failed : rl_add(t, "\"", 1);
}

static inline const char *rl__space(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
  return p;
}

/* rl__value returns the end of the JSON value that begins at p. */
static inline const char *rl__value(const char *p, const char *end) {
  int depth = 0, quoted = 0;
  const char *start = p;
  for (; p < end; p++) {
    if (quoted) {
      if (*p == '\\') p++;
      else if (*p == '"') quoted = 0;
      if (!quoted && !depth) return p + 1;
      continue;
    }
    if (*p == '"') quoted = 1;
    else if (*p == '{' || *p == '[') depth++;
    else if ((*p == '}' || *p == ']') && depth && !--depth) return p + 1;
    else if (!depth && (*p == ',' || *p == '}' || *p == ']' || *p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
      return p > start ? p : NULL;
  }
  return depth || quoted || p == start || p > end ? NULL : p;
}

/* rl_json_get finds a member of a JSON object and returns the text of its value,
 * which has *size bytes; NULL where there is none. A member of a member is found
 * in that text. */
static inline const char *rl_json_get(const char *json, size_t length, const char *key, size_t *size) {
  const char *end = json + length, *p = rl__space(json, end), *k, *v, *e;
  if (p == end || *p++ != '{') return NULL;
  for (;;) {
    k = rl__space(p, end);
    if (k == end || *k != '"' || !(e = rl__value(k, end))) return NULL;
    p = rl__space(e, end);
    if (p == end || *p++ != ':') return NULL;
    v = rl__space(p, end);
    if (!(p = rl__value(v, end))) return NULL;
    if ((size_t)(e - k) == strlen(key) + 2 && !memcmp(k + 1, key, strlen(key))) {
      *size = (size_t)(p - v);
      return v;
    }
    p = rl__space(p, end);
    if (p == end || *p++ != ',') return NULL;
  }
}

static inline unsigned rl__hex(const char *p) {
  unsigned v = 0;
  for (int i = 0; i < 4; i++) {
    char c = p[i];
    v = v << 4 | (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
  }
  return v & 0xffff;
}

/* rl_json_string decodes the text of a JSON string into room bytes, a NUL
 * included, and returns how many bytes it has without that; -1 where it is no
 * string or does not fit. What fits is there anyway. */
static inline int rl_json_string(const char *json, size_t size, char *out, size_t room) {
  size_t n = 0;
  if (room) out[0] = 0;
  if (!room || size < 2 || json[0] != '"' || json[size - 1] != '"') return -1;
  for (const char *p = json + 1, *end = json + size - 1; p < end;) {
    char utf8[4];
    size_t width = 1;
    utf8[0] = *p++;
    if (utf8[0] == '\\' && p < end) {
      char c = *p++;
      const char *from = "bfnrt", *to = "\b\f\n\r\t", *at = strchr(from, c);
      utf8[0] = at && c ? to[at - from] : c;
      if (c == 'u' && end - p >= 4) {
        unsigned r = rl__hex(p);
        p += 4;
        if (r >> 10 == 0x36 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' && rl__hex(p + 2) >> 10 == 0x37) {
          r = 0x10000 + ((r & 0x3ff) << 10) + (rl__hex(p + 2) & 0x3ff);
          p += 6;
        }
        if (r >> 11 == 0x1b) r = 0xfffd; /* half a character */
        width = r < 0x80 ? 1 : r < 0x800 ? 2 : r < 0x10000 ? 3 : 4;
        for (size_t i = width; i-- > 1; r >>= 6) utf8[i] = (char)(0x80 | (r & 0x3f));
        utf8[0] = (char)(width == 1 ? r : (0xf00u >> width & 0xf0u) | r);
      }
    }
    if (n + width >= room) return -1;
    memcpy(out + n, utf8, width);
    n += width;
    out[n] = 0;
  }
  return (int)n;
}

/* ---- the protocol of a call ---- */

#ifdef __cplusplus
extern "C" {
#endif
#define RL_IMPORT(name) __attribute__((import_module("runloop_v1"), import_name(#name))) extern
#define RL_IN(a) const void *a, size_t a##_size
#define RL_OUT void *out, size_t room
RL_IMPORT(response_read) int32_t rl__response_read(RL_OUT);
RL_IMPORT(net_http) int64_t rl__net_http(RL_IN(request), RL_IN(body), RL_OUT);
RL_IMPORT(kb_get) int64_t rl__kb_get(RL_IN(domain), RL_IN(key), RL_OUT);
RL_IMPORT(kb_put) int64_t rl__kb_put(RL_IN(domain), RL_IN(key), RL_IN(value), RL_OUT);
RL_IMPORT(kb_cas) int64_t rl__kb_cas(RL_IN(domain), RL_IN(key), RL_IN(value), RL_IN(revision), RL_OUT);
RL_IMPORT(kb_delete) int64_t rl__kb_delete(RL_IN(domain), RL_IN(key), RL_OUT);
RL_IMPORT(kb_list) int64_t rl__kb_list(RL_IN(domain), RL_IN(prefix), RL_OUT);
RL_IMPORT(kb_search) int64_t rl__kb_search(RL_IN(domain), RL_IN(query), RL_OUT);
RL_IMPORT(secret_handle) int64_t rl__secret_handle(RL_IN(id), RL_OUT);
RL_IMPORT(model_complete) int64_t rl__model_complete(RL_IN(request), RL_OUT);
RL_IMPORT(model_embed) int64_t rl__model_embed(RL_IN(request), RL_OUT);
RL_IMPORT(exec_run) int64_t rl__exec_run(RL_IN(request), RL_IN(input), RL_OUT);
RL_IMPORT(mcp_call) int64_t rl__mcp_call(RL_IN(request), RL_OUT);
RL_IMPORT(agent_launch) int64_t rl__agent_launch(RL_IN(request), RL_OUT);
RL_IMPORT(turn_next) int64_t rl__turn_next(RL_OUT);
RL_IMPORT(time_now) int64_t rl__time_now(RL_OUT);
RL_IMPORT(log) int64_t rl__log(RL_IN(level), RL_IN(message), RL_OUT);
RL_IMPORT(result) int64_t rl__result(RL_IN(json), RL_OUT);
#undef RL_IMPORT
#undef RL_IN
#undef RL_OUT
#ifdef __cplusplus
}
#endif

static char rl__scratch[4096]; /* where responses arrive that are no longer */

static inline const char *rl__word(int number) {
  switch (number) {
    case RL_TOO_BIG: return "too big";
    case RL_DENIED: return "denied";
    case RL_CONFLICT: return "revision conflict";
    case RL_BUDGET: return "budget exhausted";
    case RL_FAULT: return "bad address";
    case RL_INVALID: return "invalid request";
    case RL_IO: return "i/o error";
    case RL_NOT_EXIST: return "does not exist";
    case RL_NO_SYS: return "no such call";
    case RL_UNAVAILABLE: return "unavailable";
    case RL_TIMEOUT: return "timed out";
  }
  return "error";
}

/* rl__fail fills err from the host's account of an error, a JSON object. */
static inline int rl__fail(const char *op, int number, const char *account, size_t length, rl_error *err) {
  const char *value;
  size_t size;
  if (!err) return number;
  memset(err, 0, sizeof *err);
  err->number = number;
  err->op = op;
  if ((value = rl_json_get(account, length, "capability", &size)))
    rl_json_string(value, size, err->capability, sizeof err->capability);
  if ((value = rl_json_get(account, length, "reason", &size)))
    rl_json_string(value, size, err->reason, sizeof err->reason);
  if ((value = rl_json_get(account, length, "hint", &size)))
    rl_json_string(value, size, err->hint, sizeof err->hint);
  int refused = number == RL_DENIED || number == RL_BUDGET;
  const char *word = rl__word(number);
  if (err->hint[0] && !refused) snprintf(err->why, sizeof err->why, "%s: %s", word, err->hint);
  else if (err->reason[0]) snprintf(err->why, sizeof err->why, "%s (%s)", word, err->reason);
  else snprintf(err->why, sizeof err->why, "%s", word);
  return number;
}

/* rl__broken is the error of a response that is not what was promised. */
static inline int rl__broken(const char *op, const char *what, rl_error *err) {
  char account[128];
  int n = snprintf(account, sizeof account, "{\"hint\":\"%s\"}", what);
  return rl__fail(op, RL_IO, account, (size_t)n, err);
}

/* rl__done takes what an import returned, with the scratch buffer for its out. */
static inline int rl__done(const char *op, int64_t n, rl_text *out, rl_error *err) {
  size_t have = 0;
  char *data;
  if (out) out->data = NULL, out->size = 0;
  if (n < 0) {
    int32_t got;
    while (have < sizeof rl__scratch &&
           (got = rl__response_read(rl__scratch + have, sizeof rl__scratch - have)) > 0)
      have += (size_t)got;
    return rl__fail(op, n < -1000 ? RL_IO : (int)-n, rl__scratch, have, err);
  }
  if (err) memset(err, 0, sizeof *err);
  if (!out) return 0;
  if (n > INT32_MAX || !(data = (char *)malloc((size_t)n + 1))) return rl__broken(op, "no memory for the response", err);
  if ((size_t)n <= sizeof rl__scratch) {
    memcpy(data, rl__scratch, have = (size_t)n);
  } else {
    while (have < (size_t)n) {
      int32_t got = rl__response_read(data + have, (size_t)n - have);
      if (got <= 0) {
        free(data);
        return rl__broken(op, "the response ended early", err);
      }
      have += (size_t)got;
    }
  }
  data[n] = 0;
  out->data = data;
  out->size = (size_t)n;
  return 0;
}

/* rl__number is rl__done for a response that is a decimal number. */
static inline int rl__number(const char *op, int64_t n, uint64_t *number, rl_error *err) {
  rl_text text;
  char *end;
  int failed = rl__done(op, n, &text, err);
  if (failed) return failed;
  uint64_t value = strtoull(text.data, &end, 10);
  int whole = text.size && end == text.data + text.size;
  free(text.data);
  if (!whole) return rl__broken(op, "a response that is no decimal number", err);
  if (number) *number = value;
  return 0;
}

/* rl__parts is rl__done for a response of two parts: the length of the first in
 * four bytes, the first, and the rest. */
static inline int rl__parts(const char *op, int64_t n, rl_text *head, rl_text *body, rl_error *err) {
  rl_text all, none = {NULL, 0}, h = none, b = none;
  int failed = rl__done(op, n, &all, err);
  if (head) *head = none;
  if (body) *body = none;
  if (failed) return failed;
  const unsigned char *p = (const unsigned char *)all.data;
  size_t size = all.size < 4 ? SIZE_MAX : p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
  if (all.size < 4 || size > all.size - 4) failed = rl__broken(op, "a response that is not framed", err);
  else if (rl_add(&h, all.data + 4, size) || rl_add(&b, all.data + 4 + size, all.size - 4 - size))
    failed = rl__broken(op, "no memory for the response", err);
  free(all.data);
  if (!failed && head) *head = h;
  else free(h.data);
  if (!failed && body) *body = b;
  else free(b.data);
  return failed;
}

#define RL__S(text) text, strlen(text)
#define RL__OUT rl__scratch, sizeof rl__scratch

/* ---- the calls ---- */

/* rl_param is the value that the operator gave a parameter of the manifest's
 * [params]; NULL: none. For kinds "dir" and "file" it is an absolute path. */
static inline const char *rl_param(const char *name) {
  char variable[96] = "RLP_PARAM_";
  size_t n = strlen(variable);
  for (; *name && n < sizeof variable - 1; name++)
    variable[n++] = (char)(*name >= 'a' && *name <= 'z' ? *name - 32 : *name);
  return *name ? NULL : getenv(variable);
}

/* rl_kb_get reads the value at a key. Needs kb_read of the domain. */
static inline int rl_kb_get(const char *domain, const char *key, rl_text *value, rl_error *err) {
  return rl__done("kb_get", rl__kb_get(RL__S(domain), RL__S(key), RL__OUT), value, err);
}

/* rl_kb_put stores a value, whatever is there; revision may be NULL. Needs
 * kb_write of the domain, as do rl_kb_cas and rl_kb_delete. */
static inline int rl_kb_put(const char *domain, const char *key, const void *value, size_t size, uint64_t *revision,
                            rl_error *err) {
  return rl__number("kb_put", rl__kb_put(RL__S(domain), RL__S(key), value, size, RL__OUT), revision, err);
}

/* rl_kb_cas stores a value if the stored revision is this one (0: nothing is
 * there); otherwise RL_CONFLICT. */
static inline int rl_kb_cas(const char *domain, const char *key, const void *value, size_t size, uint64_t expected,
                            uint64_t *revision, rl_error *err) {
  char number[24];
  snprintf(number, sizeof number, "%llu", (unsigned long long)expected);
  return rl__number("kb_cas", rl__kb_cas(RL__S(domain), RL__S(key), value, size, RL__S(number), RL__OUT), revision, err);
}

/* rl_kb_delete removes a key. */
static inline int rl_kb_delete(const char *domain, const char *key, rl_error *err) {
  return rl__done("kb_delete", rl__kb_delete(RL__S(domain), RL__S(key), RL__OUT), NULL, err);
}

/* rl_kb_list lists keys that begin with a prefix: JSON [{key,revision,size}].
 * Needs kb_read of the domain. */
static inline int rl_kb_list(const char *domain, const char *prefix, rl_text *json, rl_error *err) {
  return rl__done("kb_list", rl__kb_list(RL__S(domain), RL__S(prefix), RL__OUT), json, err);
}

/* rl_kb_search finds up to most values that suit a text best: JSON
 * [{key,score,snippet}]. Needs kb_read of the domain. */
static inline int rl_kb_search(const char *domain, const char *text, int most, rl_text *json, rl_error *err) {
  char end[32];
  rl_text query = {NULL, 0};
  if (json) json->data = NULL, json->size = 0;
  snprintf(end, sizeof end, ",\"k\":%d}", most);
  if (rl_add(&query, "{\"text\":", 8) || rl_add_string(&query, RL__S(text)) || rl_add(&query, RL__S(end))) {
    free(query.data);
    return rl__broken("kb_search", "no memory for the request", err);
  }
  int64_t n = rl__kb_search(RL__S(domain), query.data, query.size, RL__OUT);
  free(query.data);
  return rl__done("kb_search", n, json, err);
}

/* rl_net_http makes one request, JSON {method,url,headers,timeout_ms}. The head of
 * the answer is JSON {status,headers}. Needs net of the host. */
static inline int rl_net_http(const char *request, const void *body, size_t size, rl_text *head, rl_text *answer,
                              rl_error *err) {
  return rl__parts("net_http", rl__net_http(RL__S(request), body, size, RL__OUT), head, answer, err);
}

/* rl_exec_run runs a program, JSON {argv,env,cwd,timeout_ms}. The head is JSON
 * {exit_code,timed_out,stdout_bytes,stderr_bytes}; output is stdout, then stderr.
 * Needs exec of the program. */
static inline int rl_exec_run(const char *request, const void *input, size_t size, rl_text *head, rl_text *output,
                              rl_error *err) {
  return rl__parts("exec_run", rl__exec_run(RL__S(request), input, size, RL__OUT), head, output, err);
}

/* rl_secret_handle gets the handle of a secret, "rlsec_...". Needs secrets of the
 * id. */
static inline int rl_secret_handle(const char *id, rl_text *handle, rl_error *err) {
  return rl__done("secret_handle", rl__secret_handle(RL__S(id), RL__OUT), handle, err);
}

/* rl_model_complete asks a model: JSON {model,messages,max_tokens,...} for JSON
 * {text,tool_calls,usage,model,finish_reason,cached}. Needs model. */
static inline int rl_model_complete(const char *request, rl_text *json, rl_error *err) {
  return rl__done("model_complete", rl__model_complete(RL__S(request), RL__OUT), json, err);
}

/* rl_model_embed turns texts into vectors: JSON {model,input} for JSON
 * {vectors,usage,model,cached}. Needs model. */
static inline int rl_model_embed(const char *request, rl_text *json, rl_error *err) {
  return rl__done("model_embed", rl__model_embed(RL__S(request), RL__OUT), json, err);
}

/* rl_mcp_call calls a tool of an MCP server: JSON {server,tool,arguments} for JSON
 * {content,structuredContent,isError}. Needs mcp of the server. */
static inline int rl_mcp_call(const char *request, rl_text *json, rl_error *err) {
  return rl__done("mcp_call", rl__mcp_call(RL__S(request), RL__OUT), json, err);
}

/* rl_agent_launch runs another agent: JSON {agent,input,allow,deny,limits} for the
 * report of its run. Needs agents of the agent. */
static inline int rl_agent_launch(const char *request, rl_text *json, rl_error *err) {
  return rl__done("agent_launch", rl__agent_launch(RL__S(request), RL__OUT), json, err);
}

/* rl_turn_next ends the turn and waits for the next input; RL_NOT_EXIST after the
 * last one. */
static inline int rl_turn_next(rl_text *input, rl_error *err) {
  return rl__done("turn_next", rl__turn_next(RL__OUT), input, err);
}

/* rl_time_now is the time in nanoseconds since 1970. Needs time. */
static inline int rl_time_now(uint64_t *nanoseconds, rl_error *err) {
  return rl__number("time_now", rl__time_now(RL__OUT), nanoseconds, err);
}

/* rl_log puts a message in the operator's log; levels are debug, info, warn and
 * error. It needs nothing. */
static inline int rl_log(const char *level, const char *message, rl_error *err) {
  return rl__done("log", rl__log(RL__S(level), RL__S(message), RL__OUT), NULL, err);
}

/* rl_result makes one JSON value what the agent returns; a later one takes its
 * place. It needs nothing. */
static inline int rl_result(const char *json, rl_error *err) {
  return rl__done("result", rl__result(RL__S(json), RL__OUT), NULL, err);
}

#endif
