package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/serve/access"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// An answers holds every answer against the document, and notes which there were.
type answers struct {
	t     *testing.T
	d     *description
	given map[string]bool
}

// of asks a handler, and returns its answer.
func (a *answers) of(h http.Handler, q ask) *httptest.ResponseRecorder {
	a.t.Helper()
	var body io.Reader = strings.NewReader(q.body)
	if q.body == late {
		body = lateBody{}
	}
	r := httptest.NewRequestWithContext(a.t.Context(), q.method, q.path, body)
	r.Host = "127.0.0.1:8770"
	if q.body == long {
		r.ContentLength = mostBody + 1
	}
	for _, line := range q.head {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	a.given[a.d.holds(a.t, q, w.Result(), w.Body.String())] = true
	return w
}

// lacking are the answers of the document that were not given.
func (a *answers) lacking() (list []string) {
	for path, methods := range a.d.Paths {
		for method, op := range methods {
			for status, r := range op.Responses {
				name := fmt.Sprintf("%s %s %s ", strings.ToUpper(method), path, status)
				if len(r.Content) == 0 && !a.given[name] {
					list = append(list, name)
				}
				for kind := range r.Content {
					if !a.given[name+kind] {
						list = append(list, name+kind)
					}
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// Bodies that are not what they say: one that never arrives, and one that says that
// it is beyond every bound.
const (
	late = "\x00late"
	long = "\x00long"
)

type lateBody struct{}

func (lateBody) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// told is the path of a route of the document, filled in.
func filled(path string) string { return strings.ReplaceAll(path, "{id}", oldRun) }

// Each answer that the document tells of is given, every status of every route, and
// is what it says.
func TestEveryAnswer(t *testing.T) {
	h := &host{log: &log{}}
	h.log.add(oldRun, 4)
	begun, gate := make(chan struct{}, 1), make(chan struct{})
	h.launch = func(ctx context.Context, c *service.Caller, q *service.Request, b service.Begin) (*launcher.Report,
		error,
	) {
		switch q.Agent {
		case "refused":
			return nil, violated(b.RunID)
		case "away":
			return nil, &service.UnavailableError{Why: io.ErrUnexpectedEOF}
		case "slow":
			begun <- struct{}{}
			select {
			case <-gate:
			case <-ctx.Done():
			}
		}
		return reportOf(c, q, b, launcher.OK), nil
	}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintln(w, "up 1")
	})
	var notReady []service.TenantState
	ready := func(context.Context) []service.TenantState { return notReady }
	o := Options{Metrics: metrics, Streams: partOfStreams, Ready: ready}
	handler, _ := handlerOf(h, o, service.Options{Workers: 1})
	a := &answers{t, describe(t, document(routes(), nil)), map[string]bool{}}
	for _, rt := range routes() {
		path := filled(rt.path)
		a.of(handler, ask{method: rt.method, path: path + "?nope=1"})
		a.guarded(rt)
		if !rt.open {
			a.of(handler, ask{method: rt.method, path: path, head: []string{"X-Who: nobody"}})
			a.of(handler, ask{method: rt.method, path: path, head: []string{"X-Who: breaks"}})
		}
	}
	a.reads(handler, h)
	notReady = []service.TenantState{{Tenant: "default", Reason: "no disk"}}
	a.of(handler, ask{method: "GET", path: "/readyz"})
	without, _ := handlerOf(h, Options{}, service.Options{})
	a.of(without, ask{method: "GET", path: "/metrics"})
	a.runs(handler, begun)
	close(gate)
	for _, name := range a.lacking() {
		t.Errorf("nothing here answers %s", name)
	}
}

// reads asks what shows something.
func (a *answers) reads(handler http.Handler, h *host) {
	get := func(path string, head ...string) *httptest.ResponseRecorder {
		return a.of(handler, ask{method: "GET", path: path, head: head})
	}
	for _, rt := range routes() {
		if rt.method == "GET" && rt.path != "/events" {
			get(filled(rt.path))
			get(filled(rt.path), "X-Who: launcher")
		}
	}
	get("/capabilities?door=mcp")
	get("/audit", "Accept: application/x-ndjson")
	get("/runs/" + oldRun + "/events?after=6")
	get("/runs/none")
	get("/runs/none/events")
	following := open(a.t, handler, ask{path: "/events"})
	get("/events")
	get("/runs/" + oldRun + "/events")
	following.leave()
	a.given[a.d.holds(a.t, ask{method: "GET", path: "/events"}, following.Result(), following.Body.String())] = true
	h.away = &service.UnavailableError{Why: io.ErrUnexpectedEOF}
	for _, path := range []string{
		"/capabilities", "/agents", "/runs", "/runs/" + oldRun, "/runs/" + oldRun + "/events",
		"/audit", "/audit/head",
	} {
		if w := get(path); w.Code != http.StatusServiceUnavailable {
			a.t.Errorf("%s: %d", path, w.Code)
		}
	}
	h.away = nil
}

// runs asks for what changes something: a worker is busy from some moment on.
func (a *answers) runs(handler http.Handler, begun <-chan struct{}) {
	post := func(path, body string, head ...string) *httptest.ResponseRecorder {
		return a.of(handler, ask{"POST", path, body, head})
	}
	for _, body := range []string{
		`{"agent":"a"}`, `{"agent":"refused"}`, `{"agent":"away"}`, `{"agent":1}`,
		`{"agent":"unknown"}`, late, long,
	} {
		post("/run", body)
	}
	page := []string{"Content-Type: text/plain", "Sec-Fetch-Site: same-origin"}
	post("/run", `{"agent":"a"}`, page...)
	post("/run", `{"agent":"a"}`, "X-Who: reader")
	slow := object1(a.t, post("/run", `{"agent":"slow","wait":false,"turns":true}`, "Idempotency-Key: k").Body.String())
	<-begun
	href, _ := slow["href"].(string)
	post("/run", `{"agent":"a"}`)
	post("/run", `{"agent":"a"}`, "Idempotency-Key: k")
	a.of(handler, ask{method: "GET", path: href})
	for _, what := range []string{"/cancel", "/input"} {
		post(href+what, `{"input":1}`, "X-Who: reader")
		post("/runs/none"+what, `{"input":1}`)
	}
	for post(href+"/input", `{"input":1}`).Code == http.StatusAccepted { // until so many wait
	}
	post(href+"/input", late)
	post(href+"/input", long)
	post(href+"/input", `{}`, page...)
	post(href+"/cancel", ``)
}

// guarded asks for a route through the doors of the service: what those answer in
// its place is told of it too.
func (a *answers) guarded(rt route) {
	a.t.Helper()
	const broken = "broken"
	store := access.OpenStore(filepath.Join(a.t.TempDir(), "tokens"), time.Now)
	doors, err := access.New(access.Options{
		Tokens: store, UID: -2, Tenant: "default", Port: 8770, BehindProxy: true, Open: access.OpenPaths(), Now: time.Now,
		Layers: func(_ context.Context, k *access.Token) ([]*caps.Layer, error) {
			if k.Name == broken {
				return nil, errors.New("a profile is gone")
			}
			return []*caps.Layer{{Name: k.Caller()}}, nil
		},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	behind := doors.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	token := func(name string) string {
		_, text, err := store.New(access.Token{Name: name, Tenant: "default", May: all, Profiles: []string{name}})
		if err != nil {
			a.t.Fatal(err)
		}
		return "Authorization: Bearer " + text
	}
	good := token("good")
	refused := map[int][]string{
		http.StatusForbidden:          {good, "Sec-Fetch-Site: cross-site"},
		http.StatusMisdirectedRequest: {good, "Host: elsewhere.example"},
	}
	if !rt.open {
		refused[http.StatusForbidden] = []string{good, "X-Runloop-Tenant: other"}
		refused[http.StatusUnauthorized] = nil
		refused[http.StatusServiceUnavailable] = []string{token(broken)}
	}
	for want, head := range refused {
		if w := a.of(behind, ask{method: rt.method, path: filled(rt.path), head: head}); w.Code != want {
			a.t.Errorf("%s: %d, want %d: %s", rt.path, w.Code, want, w.Body)
		}
	}
	for range 10 {
		if rt.open {
			return
		}
		if w := a.of(behind, ask{method: rt.method, path: filled(rt.path), head: []string{good[:len(good)-3] +
			"222"}}); w.Code == http.StatusTooManyRequests {
			return
		}
	}
	a.t.Errorf("%s: whoever guesses is not slowed", rt.path)
}
