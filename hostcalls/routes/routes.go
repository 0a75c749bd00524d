// Package routes answers what programs ask of the names that end in ".rlp".
//
// A request to HOST.rlp is sent to HOST by https, with a secret that the program does
// not see, if a route of the policy takes it: matched by host, method and path in
// their one spelling, and then judged, recorded and sent as any request is. What has
// no route, or is written so that servers could read it in two ways, is sent nowhere.
// The other names are services of rlp's own.
package routes

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/lend"
)

// A Sender sends what a route takes; [hostcalls.ProgramHost] does. A request without
// a route it refuses and records.
type Sender interface {
	Send(ctx context.Context, q *hostcalls.RouteRequest) (*http.Response, error)
}

// A Handler answers the requests of one run, each of which came in plain HTTP over a
// connection of the run's program to a name that ends in [caps.OwnSuffix]. Its server reads
// HTTP/1 alone, bounds heads and times, and leaves "OPTIONS *" to it
// (DisableGeneralOptionsHandler).
type Handler struct {
	Sender Sender
	Routes []caps.Route
	// Services answer names of one label, such as "model" for model.rlp.
	Services map[string]http.Handler

	bodies lend.Room
}

// maxBodies is what the bodies of all requests of a run under way hold, in bytes.
const maxBodies = 2 * hostcalls.MaxRequestBody

// Has reports whether something answers to name: a service, or a route.
func (h *Handler) Has(name string) bool {
	host, own := strings.CutSuffix(name, caps.OwnSuffix)
	return own && (h.Services[host] != nil ||
		slices.ContainsFunc(h.Routes, func(r caps.Route) bool { return r.Host == host }))
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, exact := strings.CutSuffix(r.Host, caps.OwnSuffix)
	if service := h.Services[host]; exact && service != nil && plain(r) {
		service.ServeHTTP(w, r)
		return
	}
	if why := notImplemented(r); why != "" {
		say(w, http.StatusNotImplemented, "nosys", why)
		return
	}
	q := &hostcalls.RouteRequest{Method: r.Method, URL: "https://" + host + "/"}
	target, query, asks := strings.Cut(r.RequestURI, "?")
	path, err := caps.RoutePath(target)
	if mode, known := caps.NetMode("https", r.Method); known && exact && plain(r) && err == nil {
		q.Route = caps.RouteOf(h.Routes, host, mode, path)
	}
	if q.Route != nil {
		if q.URL = "https://" + host + path; asks {
			q.URL += "?" + query
		}
		var free func()
		q.Header = taken(r.Header)
		q.Body, free, err = h.bodies.Read(r.Body, hostcalls.MaxRequestBody, maxBodies)
		defer free()
		if err != nil {
			unread(w, err)
			return
		}
	}
	resp, err := h.Sender.Send(r.Context(), q)
	if err != nil {
		Refuse(w, err)
		return
	}
	pass(w, resp, host)
}

// plain reports whether a request names its server once, by the Host header alone,
// and its target by a path.
func plain(r *http.Request) bool {
	return strings.HasPrefix(r.RequestURI, "/") && r.URL.Host == "" && r.URL.User == nil
}

// notImplemented says what of r is no request and one answer to it; "" if nothing.
func notImplemented(r *http.Request) string {
	kind := strings.ToLower(r.Header.Get("Content-Type"))
	switch {
	case r.Method == http.MethodConnect, r.Header.Get("Upgrade") != "", r.Header.Get("Http2-Settings") != "":
		return "a route carries requests and answers, and no other protocol (Upgrade, CONNECT)"
	case strings.HasPrefix(kind, "application/grpc"):
		return "a route carries HTTP/1 requests and answers, and no gRPC"
	}
	return ""
}

// hopByHop are the headers of a connection, which end where it does, and those of
// proxies.
func hopByHop() []string {
	return []string{
		"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade",
	}
}

// taken is what of a request's head is sent on.
func taken(all http.Header) http.Header {
	head := all.Clone()
	for _, named := range head["Connection"] {
		for name := range strings.SplitSeq(named, ",") {
			head.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range append(hopByHop(), "Content-Length", "Expect", "Accept-Encoding") {
		head.Del(name)
	}
	return head
}

// unread says why a body was not read.
func unread(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, lend.ErrLong):
		say(w, http.StatusRequestEntityTooLarge, "2big", "the body of a request is at most 64 MiB")
	case errors.Is(err, lend.ErrFull):
		say(w, http.StatusServiceUnavailable, "notsup", err.Error())
	default:
		say(w, http.StatusBadRequest, "inval", "the body broke off")
	}
}

// outside are headers of an answer that are for rlp, or for a browser about the real
// host: cookies, which would be a credential of the program's, and promises about TLS.
func outside() []string {
	return []string{
		"Content-Length", "Content-Encoding", "Set-Cookie", "Set-Cookie2", "Strict-Transport-Security", "Alt-Svc", "Alt-Used",
		"Public-Key-Pins", "Public-Key-Pins-Report-Only", "Expect-Ct",
	}
}

// pass gives the program an answer as it comes.
func pass(w http.ResponseWriter, resp *http.Response, host string) {
	defer resp.Body.Close()
	head := w.Header()
	for name, values := range resp.Header {
		if !slices.Contains(outside(), name) && !slices.Contains(hopByHop(), name) {
			head[name] = values
		}
	}
	if to := resp.Header.Get("Location"); to != "" {
		head.Del("Location")
		if to = located(to, resp.Request.URL, host); to != "" {
			head.Set("Location", to)
		}
	}
	w.WriteHeader(resp.StatusCode)
	flow := http.NewResponseController(w)
	_ = flow.Flush() // whoever waits for events is told that they will come
	buffer := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buffer)
		if n > 0 {
			if _, gone := w.Write(buffer[:n]); gone != nil {
				return
			}
			_ = flow.Flush() // what streams is seen as it comes
		}
		switch {
		case err == io.EOF:
			return
		case err != nil:
			panic(http.ErrAbortHandler) // an answer that broke off does not look whole
		}
	}
}

// located is where an answer leads a program: to the same host by its route, to any
// other by the program's own means. "" is nowhere.
func located(to string, from *url.URL, host string) string {
	ref, err := url.Parse(to)
	if err != nil {
		return ""
	}
	u := from.ResolveReference(ref)
	if u.Scheme == "https" && u.User == nil && (u.Host == host || u.Host == host+":443") {
		u.Scheme, u.Host = "http", host+caps.OwnSuffix
	}
	return u.String()
}

// Refuse tells a program why it got no answer, in the words and with the number that
// a guest would be given.
func Refuse(w http.ResponseWriter, err error) {
	var no *hostcalls.Refusal
	if !errors.As(err, &no) {
		say(w, http.StatusBadGateway, "io", "the host could not do it; its log says why")
		return
	}
	body(w, Status(no.Number), no.Said)
}

// Status is the status of HTTP for an error number.
func Status(n hostcalls.Errno) int {
	switch n {
	case hostcalls.Acces:
		return http.StatusForbidden
	case hostcalls.Dquot:
		return http.StatusTooManyRequests
	case hostcalls.Inval:
		return http.StatusBadRequest
	case hostcalls.Noent:
		return http.StatusNotFound
	case hostcalls.TooBig:
		return http.StatusRequestEntityTooLarge
	case hostcalls.TimedOut:
		return http.StatusGatewayTimeout
	case hostcalls.Notsup:
		return http.StatusServiceUnavailable
	}
	return http.StatusBadGateway
}

func say(w http.ResponseWriter, status int, word, hint string) {
	text, err := json.Marshal(map[string]string{"error": word, "reason": word, "hint": hint})
	if err != nil {
		return
	}
	body(w, status, text)
}

func body(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
