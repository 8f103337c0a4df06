/*
 * The process behind steady.ts: sends requests at a constant rate over keep-alive connections, even
 * if responses are late. Its arguments are those of SteadyOrder in their order, the URL as address,
 * port, host and target; it prints a SteadyResult as JSON.
 *
 * It is written in C, because with one core it must send 70 % of the requests that a server with
 * one core can answer.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES_MAX = 4096, EVENTS_MAX = 16 };
/* At most so many bytes of content are read in one call. */
static const size_t READ_BYTES = 1 << 20;
static const double PATIENCE_S = 10;

/* A connection: every n-th request is due on it, and at most one is in flight. */
struct connection {
  int fd;
  long due;
  long answered;
  /* Missing bytes of the response; negative before its first byte. */
  long missing;
};

static char request[2048];
static size_t request_bytes;
static char status_line[32];
static long content_bytes;
static long connection_count;
static struct connection *connections;

static double started, interval;
static long uncounted, total, answered;
static double *latencies, *lateness;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
  exit(1);
}

/* Seconds on a monotonic clock. */
static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The number of the oldest request of a connection that has no response yet. */
static long oldest(const struct connection *at) {
  return at->answered * connection_count + (at - connections);
}

static void send_request(const struct connection *at) {
  if (send(at->fd, request, request_bytes, MSG_NOSIGNAL) != (ssize_t)request_bytes) {
    fail("a request could not be sent: %s", strerror(errno));
  }
}

/* Sends the due requests. Lateness counts only if the connection was not waiting for a response. */
static long send_due(long next, double now) {
  for (; next < total && started + (double)next * interval <= now; next += 1) {
    struct connection *at = &connections[next % connection_count];
    at->due += 1;
    if (at->due - at->answered > 1) continue;
    if (next >= uncounted) lateness[next - uncounted] = now_s() - (started + (double)next * interval);
    send_request(at);
  }
  return next;
}

/* Checks the head of a response in the bytes received; returns how many bytes are missing. */
static long begin(const char *head, long bytes) {
  if (bytes < (long)strlen(status_line) || strncmp(head, status_line, strlen(status_line)) != 0) {
    fail("an answer that starts with %.20s", head);
  }
  const char *end = memmem(head, (size_t)bytes, "\r\n\r\n", 4);
  if (end == NULL) fail("a head that came in pieces, or is longer than %d bytes", HEAD_BYTES_MAX);
  return end + 4 - head + content_bytes - bytes;
}

/* Reads the available bytes of a response; after its end, sends the request that waited for it. */
static void take(struct connection *at) {
  char head[HEAD_BYTES_MAX + 1];
  for (;;) {
    const int is_new = at->missing < 0;
    /* With MSG_TRUNC, Linux discards the bytes of a TCP socket without a copy. */
    const ssize_t bytes = is_new ? recv(at->fd, head, HEAD_BYTES_MAX, MSG_DONTWAIT)
                                 : recv(at->fd, NULL, READ_BYTES, MSG_DONTWAIT | MSG_TRUNC);
    if (bytes < 0 && errno == EAGAIN) return;
    if (bytes <= 0) fail("a connection was closed");
    if (at->due == at->answered) fail("a response without a request");
    head[is_new ? bytes : 0] = '\0';
    at->missing = is_new ? begin(head, bytes) : at->missing - bytes;
    if (at->missing < 0) fail("more content than expected");
    if (at->missing == 0) break;
  }
  const long number = oldest(at);
  if (number >= uncounted) {
    latencies[number - uncounted] = now_s() - (started + (double)number * interval);
  }
  at->missing = -1;
  at->answered += 1;
  answered += 1;
  if (at->due > at->answered) send_request(at);
}

static void open_connections(int epoll, const char *address, int port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (inet_pton(AF_INET, address, &to.sin_addr) != 1) fail("%s is no address", address);
  for (long at = 0; at < connection_count; at += 1) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
      fail("no connection: %s", strerror(errno));
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connections[at]};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) fail("%s", strerror(errno));
    connections[at] = (struct connection){.fd = fd, .missing = -1};
  }
}

static int ascending(const void *one, const void *other) {
  const double difference = *(const double *)one - *(const double *)other;
  return (difference > 0) - (difference < 0);
}

/* A quantile of sorted values in seconds; in milliseconds. */
static double share_ms(const double *sorted, double part) {
  return 1000 * sorted[(long)((double)(total - uncounted) * part)];
}

int main(int argc, char **argv) {
  if (argc != 11) fail("usage: ADDRESS PORT HOST TARGET STATUS BYTES CONNECTIONS RATE WARM_S S");
  request_bytes = (size_t)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n",
                                   argv[4], argv[3]);
  if (request_bytes >= sizeof request) fail("a target that is too long");
  snprintf(status_line, sizeof status_line, "HTTP/1.1 %s ", argv[5]);
  content_bytes = atol(argv[6]);
  connection_count = atol(argv[7]);
  const double rate = atof(argv[8]);
  if (connection_count < 1 || !(rate > 0)) fail("no connections, or no rate");
  interval = 1 / rate;
  uncounted = (long)(rate * atof(argv[9]));
  total = uncounted + (long)(rate * atof(argv[10]));
  const size_t counted = (size_t)(total - uncounted);
  connections = calloc((size_t)connection_count, sizeof *connections);
  latencies = calloc(counted, sizeof *latencies);
  lateness = calloc(counted, sizeof *lateness);
  if (counted == 0 || !connections || !latencies || !lateness) fail("nothing to count, or no memory");

  const int epoll = epoll_create1(0);
  open_connections(epoll, argv[1], atoi(argv[2]));
  struct epoll_event events[EVENTS_MAX];
  long next = 0;
  started = now_s();
  while (answered < total) {
    const double now = now_s();
    next = send_due(next, now);
    /* The loop never sleeps, so that it sends each request when it is due. */
    const int ready = epoll_wait(epoll, events, EVENTS_MAX, 0);
    for (int at = 0; at < ready; at += 1) take(events[at].data.ptr);
    if (now - started > (double)total * interval + PATIENCE_S) fail("answers did not come");
  }
  const double seconds = now_s() - started;
  qsort(latencies, counted, sizeof *latencies, ascending);
  qsort(lateness, counted, sizeof *lateness, ascending);
  printf("{\"requestsPerSecond\":%.1f,\"p50Ms\":%.4f,\"p99Ms\":%.4f,\"p999Ms\":%.4f,\"lateP99Ms\":%.4f}\n",
         (double)total / seconds, share_ms(latencies, 0.5), share_ms(latencies, 0.99),
         share_ms(latencies, 0.999), share_ms(lateness, 0.99));
  return 0;
}
