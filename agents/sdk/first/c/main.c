/* first_agent greets whom it is told to greet, and counts how often it did. */
#include "runloop.h"

/* count adds one to how often a name was greeted, in the knowledge base. */
static int count(const char *name, int *times, rl_error *err) {
  rl_text value;
  char text[16];
  *times = 0;
  int failed = rl_kb_get("events", name, &value, err);
  if (failed && failed != RL_NOT_EXIST) return failed;
  if (!failed) *times = atoi(value.data);
  free(value.data);
  snprintf(text, sizeof text, "%d", ++*times);
  return rl_kb_put("events", name, text, strlen(text), NULL, err);
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "world";
  int times;
  rl_error err;
  if (count(name, &times, &err)) { /* a denial is no reason to end */
    printf("hello, %s; I cannot count: %s\n", name, err.why);
    return 0;
  }
  printf("hello, %s (%d)\n", name, times);
  char result[16];
  snprintf(result, sizeof result, "%d", times);
  if (rl_result(result, &err)) fprintf(stderr, "result: %s\n", err.why);
  return 0;
}
