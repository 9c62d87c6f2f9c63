// A patch as a WASM module: proxies wait two seconds at most for a connection to any cluster. docs/contract.md is what it is made from.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint8_t *at; size_t size, room; } buffer;

static void put(buffer *b, const void *bytes, size_t size) {
  if (b->size + size > b->room) {
    b->room = 2 * (b->size + size) + 256;
    b->at = realloc(b->at, b->room);
    if (b->at == NULL) exit(1);
  }
  if (size > 0) memcpy(b->at + b->size, bytes, size);
  b->size += size;
}

static void varint(buffer *b, uint64_t n) {
  for (; n >= 0x80; n >>= 7) put(b, &(uint8_t){(uint8_t)n | 0x80}, 1);
  put(b, &(uint8_t){(uint8_t)n}, 1);
}

// Fields of protobuf messages: a number, and bytes, which texts and messages are too.
static void number(buffer *b, int field, uint64_t n) { varint(b, field << 3); varint(b, n); }
static void bytes(buffer *b, int field, const void *at, size_t size) { varint(b, field << 3 | 2); varint(b, size); put(b, at, size); }
static void text(buffer *b, int field, const char *s) { bytes(b, field, s, strlen(s)); }

typedef struct { const uint8_t *at, *end; int field, type, bad; uint64_t number; const uint8_t *value; size_t size; const uint8_t *raw; } reader;

static uint64_t read_varint(reader *r) {
  uint64_t n = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (r->at == r->end) break;
    uint8_t b = *r->at++;
    n |= (uint64_t)(b & 0x7f) << shift;
    if (b < 0x80) return n;
  }
  r->bad = 1;
  return 0;
}

// next reads a field; value and size are its bytes.
static int next(reader *r) {
  if (r->bad || r->at == r->end) return 0;
  r->raw = r->at;
  uint64_t tag = read_varint(r);
  r->field = tag >> 3, r->type = tag & 7, r->value = r->at, r->size = 0;
  switch (r->type) {
  case 0: r->number = read_varint(r); break;
  case 1: r->size = 8; break;
  case 2: r->size = read_varint(r); r->value = r->at; break;
  case 5: r->size = 4; break;
  default: r->bad = 1;
  }
  if (r->bad || r->size > (size_t)(r->end - r->at)) return r->bad = 1, 0;
  r->at += r->size;
  return 1;
}

static reader over(const uint8_t *at, size_t size) { return (reader){.at = at, .end = at + size}; }

static int64_t credit = 16 << 20;
static int step(void);

static size_t cost(size_t size) { return size < 256 ? 256 : size; }

// say sends a FromPlugin message of one field. What costs credit waits for it.
static void say(int field, buffer *b, int is_free) {
  buffer m = {0};
  bytes(&m, field, b->at, b->size);
  if (!is_free) {
    while (credit < (int64_t)cost(m.size)) step();
    credit -= cost(m.size);
  }
  uint32_t size = m.size; // WASM is little-endian, as the length has to be.
  fwrite(&size, 4, 1, stdout);
  fwrite(m.at, 1, m.size, stdout);
  fflush(stdout);
  free(m.at), free(b->at);
}

static void ready(void) {
  buffer type = {0}, b = {0};
  text(&type, 1, "type.googleapis.com/envoy.config.cluster.v3.Cluster");
  number(&b, 1, 1), text(&b, 2, "timeout-c"), text(&b, 3, "1"), number(&b, 4, 4), bytes(&b, 8, type.at, type.size);
  free(type.at);
  say(1, &b, 1);
}

// cluster appends a Resource {name, bytes} with connect_timeout (4) of 2 s; 0 if the bytes are no message.
static int cluster(buffer *out, const uint8_t *at, size_t size) {
  buffer body = {0}, resource = {0};
  const uint8_t *name = at, *given = at;
  size_t name_size = 0, given_size = 0;
  reader r = over(at, size);
  while (next(&r)) {
    if (r.field == 1) name = r.value, name_size = r.size;
    if (r.field == 2) given = r.value, given_size = r.size;
  }
  reader fields = over(given, given_size);
  while (next(&fields))
    if (fields.field != 4) put(&body, fields.raw, fields.at - fields.raw);
  bytes(&body, 4, "\x08\x02", 2); // Duration{seconds: 2}
  bytes(&resource, 1, name, name_size), bytes(&resource, 2, body.at, body.size);
  bytes(out, 2, resource.at, resource.size);
  free(body.at), free(resource.at);
  return !fields.bad;
}

static void patch(const uint8_t *at, size_t size) {
  buffer resources = {0}, b = {0};
  uint64_t id = 0;
  int good = 1;
  reader r = over(at, size);
  while (next(&r)) {
    if (r.field == 1) id = r.number;
    if (r.field == 5) good &= cluster(&resources, r.value, r.size);
  }
  number(&b, 1, id);
  if (good) put(&b, resources.at, resources.size);
  else text(&b, 4, "the bytes of a cluster can't be read");
  free(resources.at);
  say(16, &b, 0);
}

static uint64_t first_number(const reader *m) {
  reader r = over(m->value, m->size);
  return next(&r) && r.field == 1 ? r.number : 0;
}

// step deals with one message; 0 at the end.
static int step(void) {
  uint32_t size;
  if (fread(&size, 4, 1, stdin) != 1) exit(0);
  uint8_t *at = malloc(size + 1);
  if (at == NULL || fread(at, 1, size, stdin) != size) exit(1);
  reader m = over(at, size);
  buffer b = {0};
  int on = 1;
  if (!next(&m)) m.field = 0;
  switch (m.field) {
  case 1: ready(); break;                                        // Hello
  case 2: credit += first_number(&m); break;                     // Credit
  case 3: number(&b, 1, first_number(&m)), say(4, &b, 1); break; // Ping
  case 4: on = 0; break;                                         // Drain
  case 14: patch(m.value, m.size); // Patch, and what is dealt with gives credit back
  default: b = (buffer){0}, number(&b, 1, cost(size)), say(3, &b, 1);
  }
  free(at);
  return on;
}

int main(void) {
  while (step()) {}
}
