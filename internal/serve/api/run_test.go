package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/base/strictjson/jsontest"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// POST /run takes what narrows and what to run, and hands all of it on;
// what is left of it is the report of a launch.
//
//rlp:holds A47
func TestRunTakesAll(t *testing.T) {
	var got service.Request
	k := serve(t, &host{launch: func(_ context.Context, c *service.Caller, q *service.Request,
		b service.Begin,
	) (*launcher.Report, error) {
		got = *q
		return reportOf(c, q, b, launcher.OK), nil
	}}, Options{}, service.Options{})
	trace := strings.Repeat("4b", 16)
	status, report := k.run(`{"agent":"a","input":{"n":[1,null]},"args":["x"],"allowed_adapters":["core"],"limits":{"max_steps":500},"policy":{"forbidden_adapters":["http"]},
		"profiles":["p"],"allow":["fs:read:/x"],"deny":["net:*"],"params":{"in":"/x"},"seed":18446744073709551615,"turns":false,"forbidden_effects":null}`,
		"traceparent: 00-"+trace+"-00f067aa0ba902b7-01")
	if status != http.StatusOK || report["outcome"] != "ok" || report["trace_id"] != trace {
		t.Fatalf("%d %v", status, report)
	}
	seed := uint64(18446744073709551615)
	want := service.Request{
		Door: service.HTTP, Agent: "a", Input: json.RawMessage(`{"n":[1,null]}`), Args: []string{"x"},
		Profiles: []string{"p"}, Allow: []string{"fs:read:/x"}, Deny: []string{"net:*"},
		Params: map[string]string{"in": "/x"}, Seed: &seed, TraceID: trace, ParentSpan: "00f067aa0ba902b7",
		Grant: json.RawMessage(`{"allowed_adapters":["core"],"limits":{"max_steps":500},"forbidden_adapters":["http"]}`),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if status, _ := k.run(`{"bundle":"` + base64.StdEncoding.EncodeToString([]byte("archive")) +
		`","policy":"[deny]\n"}`); status != http.StatusOK || string(got.Bundle) != "archive" || got.Override != "[deny]\n" {
		t.Errorf("%d %+v", status, got)
	}
}

// The seed's own request is told what stands in the place of its program, and is
// taken with that, its grant as it was sent.
//
//rlp:holds A47
func TestTheSeedsRequest(t *testing.T) {
	const seeds = `{
"code": "S app api /api\nL1:\nR core.ADD 2 3 ->sum\nJ sum",
"allowed_adapters": ["core"],
"limits": {"max_steps": 500}
}`
	var got *service.Request
	k := serve(t, &host{launch: func(_ context.Context, c *service.Caller, q *service.Request,
		b service.Begin,
	) (*launcher.Report, error) {
		got = q
		return reportOf(c, q, b, launcher.OK), nil
	}}, Options{}, service.Options{})
	status, problem := k.run(seeds)
	fields, _ := json.Marshal(problem["fields"])
	if status != http.StatusBadRequest || problem["field"] != "code" || got != nil ||
		!strings.Contains(string(fields), "name an installed agent as agent, or send an archive in base64 as bundle") {
		t.Errorf("%d %v", status, problem)
	}
	status, _ = k.run(strings.Replace(seeds, `"code": "S app api /api\nL1:\nR core.ADD 2 3 ->sum\nJ sum"`,
		`"agent": "sum"`, 1))
	if status != http.StatusOK || got == nil || got.Agent != "sum" ||
		string(got.Grant) != `{"allowed_adapters":["core"],"limits":{"max_steps": 500}}` {
		t.Errorf("with an agent: %d %+v", status, got)
	}
}

// badBodies are bodies with the fields that are wrong with them.
func badBodies() map[string][]string {
	deep := strings.Repeat(`[`, strictjson.MaxDepth+1) + strings.Repeat(`]`, strictjson.MaxDepth+1)
	return map[string][]string{
		``: {""}, `   `: {""}, `[]`: {""}, `null`: {""}, `{`: {""}, `{"agent":"a"}{}`: {""}, `{"agent":"a",}`: {""},
		"{\"agent\":\"\xff\"}": {""}, `{'agent':1}`: {""},
		`{}`:                                                   {"agent"},
		`{"agent":1}`:                                          {"agent"},
		`{"agent":"a","agent":"b"}`:                            {"agent"},
		`{"agent":"a","\u0061gent":"b"}`:                       {"agent"},
		`{"agent":"a","Agent":"b"}`:                            {"Agent"},
		`{"agent":"a","tenant":"b"}`:                           {"tenant"},
		`{"agent":"a","args":["x",null]}`:                      {"args[1]"},
		`{"agent":"a","args":"x"}`:                             {"args"},
		`{"agent":"a","deny":[1,"x",{}]}`:                      {"deny[0]", "deny[2]"},
		`{"agent":"a","wait":"no"}`:                            {"wait"},
		`{"agent":"a","seed":1.5}`:                             {"seed"},
		`{"agent":"a","seed":-1}`:                              {"seed"},
		`{"agent":"a","bundle":"?"}`:                           {"bundle"},
		`{"agent":"a","params":{"x":null}}`:                    {"params.x"},
		`{"agent":"a","params":[]}`:                            {"params"},
		`{"agent":"a","policy":7}`:                             {"policy"},
		`{"agent":"a","policy":{"allow":1}}`:                   {"policy.allow"},
		`{"agent":"a","limits":{"max_steps":1,"max_steps":2}}`: {"limits.max_steps"},
		`{"agent":"a","input":{"a":[{"b":1,"b":2}]}}`:          {"input.a[0].b"},
		`{"agent":"a","input":` + deep + `}`: {"input" + strings.Repeat("[0]",
			strictjson.MaxDepth)},
		`{"agent":"a","limits":{"max_steps":1},"policy":{"limits":{}}}`: {"policy.limits"},
		`{"wait":1,"turns":2,"args":[null],"nope":3}`:                   {"wait", "turns", "args[0]", "nope", "agent"},
	}
}

// A malformed request is 400 with the path of each field that is wrong,
// and what to write.
//
//rlp:holds A54
func TestRunRefusesBadBodies(t *testing.T) {
	launched := false
	k := serve(t, &host{launch: func(_ context.Context, c *service.Caller, q *service.Request,
		b service.Begin,
	) (*launcher.Report, error) {
		launched = true
		return reportOf(c, q, b, launcher.OK), nil
	}}, Options{}, service.Options{})
	for body, fields := range badBodies() {
		status, problem := k.run(body)
		var got []string
		list, _ := problem["fields"].([]any)
		for _, f := range list {
			m, _ := f.(map[string]any)
			text, _ := m["field"].(string)
			got = append(got, text)
			if m["message"] == "" {
				t.Errorf("%.60q: %v says not what to write", body, m)
			}
		}
		if status != http.StatusBadRequest || problem["error"] != "invalid_request" || !slices.Equal(got, fields) {
			t.Errorf("%.60q: %d %v, want the fields %q", body, status, problem, fields)
		}
	}
	if launched {
		t.Error("one of them was launched")
	}
	if status, _ := k.run(`{"agent":"a"}`); status != http.StatusOK || !launched { // control
		t.Error("a good body is refused")
	}
}

// Null in a list of the grant is told by its place in the body, whichever
// of the two places has the grant.
//
//rlp:holds A54
func TestGrantFindingsHavePathsOfTheBody(t *testing.T) {
	k := serve(t, &host{check: func(q *service.Request) error {
		if strings.Contains(string(q.Grant), "null") {
			return service.FieldErrors{{Field: "forbidden_adapters[1]", Why: "is null"}, {
				Field: "limits.max_steps",
				Why:   "is negative",
			}}
		}
		return nil
	}}, Options{}, service.Options{})
	_, at := k.run(`{"agent":"a","forbidden_adapters":["http",null]}`)
	_, below := k.run(`{"agent":"a","limits":{"max_steps":-1},"policy":{"forbidden_adapters":["http",null]}}`)
	if at["field"] != "forbidden_adapters[1]" || below["field"] != "policy.forbidden_adapters[1]" ||
		!strings.Contains(below["message"].(string), "policy.forbidden") {
		t.Errorf("%v\n%v", at, below)
	}
}

// What policy refuses is 403 with every violation.
//
//rlp:holds A40
func TestViolations(t *testing.T) {
	h := &host{launch: func(_ context.Context, _ *service.Caller, _ *service.Request, b service.Begin) (*launcher.Report,
		error,
	) {
		return nil, violated(b.RunID)
	}}
	k := serve(t, h, Options{}, service.Options{Workers: 1})
	status, v := k.run(`{"agent":"a"}`)
	list, _ := v["violations"].([]any)
	if status != http.StatusForbidden || v["error"] != "policy_violation" || v["run_id"] == "" || v["trace_id"] == nil ||
		len(list) != 2 {
		t.Fatalf("%d %v", status, v)
	}
	for _, one := range list {
		m, _ := one.(map[string]any)
		for _, key := range []string{"code", "message", "capability", "layer"} {
			if m[key] == "" || m[key] == nil {
				t.Errorf("%v has no %s", m, key)
			}
		}
	}
	if text, _ := v["message"].(string); !strings.Contains(text, "rlp caps explain") {
		t.Errorf("%q says not how to see why", text)
	}
}

// Refused and broken jobs harm no worker, and none of them stays under way.
//
//rlp:holds A53
func TestBadJobsHarmNoWorker(t *testing.T) {
	h := &host{}
	h.launch = func(_ context.Context, c *service.Caller, q *service.Request, b service.Begin) (*launcher.Report, error) {
		switch q.Agent {
		case "refused":
			return nil, violated(b.RunID)
		case "broken":
			panic("SECRET-PAYLOAD")
		}
		return reportOf(c, q, b, launcher.OK), nil
	}
	k := serve(t, h, Options{}, service.Options{Workers: 1, Queue: 8})
	for range 3 {
		if status, _ := k.run(`{"agent":"refused"}`); status != http.StatusForbidden {
			t.Error(status)
		}
		status, problem := k.run(`{"agent":"broken"}`)
		if text, _ := json.Marshal(problem); status != http.StatusInternalServerError || strings.Contains(string(text),
			"SECRET") {
			t.Errorf("%d %s", status, text)
		}
	}
	if status, report := k.run(`{"agent":"a"}`); status != http.StatusOK || report["outcome"] != "ok" {
		t.Errorf("the worker is gone: %d %v", status, report)
	}
	_, body := k.do(ask{path: "/runs?state=running"})
	if list, _ := object1(t, body)["runs"].([]any); len(list) != 0 {
		t.Errorf("%s", body)
	}
}

// Other ways to be refused, each with its status and its code.
func TestRefusals(t *testing.T) {
	begun := make(chan struct{}, 1)
	free := make(chan struct{})
	k := serve(t, &host{launch: func(ctx context.Context, c *service.Caller, q *service.Request,
		b service.Begin,
	) (*launcher.Report, error) {
		begun <- struct{}{}
		select {
		case <-free:
		case <-ctx.Done():
		}
		return reportOf(c, q, b, launcher.OK), nil
	}}, Options{}, service.Options{Workers: 1})
	status, first := k.run(`{"agent":"a","wait":false}`, "Idempotency-Key: one")
	<-begun
	if status != http.StatusAccepted || first["href"] != "/runs/"+first["run_id"].(string) ||
		first["events"] != first["href"].(string)+"/events" {
		t.Fatalf("%d %v", status, first)
	}
	if _, again := k.run(`{"agent":"a","wait":false}`, "Idempotency-Key: one"); again["run_id"] != first["run_id"] {
		t.Errorf("the key is another run: %v", again)
	}
	for _, c := range []struct {
		name   string
		ask    ask
		status int
		code   string
	}{
		{"busy", ask{"POST", "/run", `{"agent":"a"}`, nil}, 429, "busy"},
		{"conflict", ask{"POST", "/run", `{"agent":"b"}`, []string{"Idempotency-Key: one"}}, 409, "conflict"},
		{"no such agent", ask{"POST", "/run", `{"agent":"unknown"}`, nil}, 404, "not_found"},
		{"no right", ask{"POST", "/run", `{"agent":"a"}`, []string{"X-Who: reader"}}, 403, "forbidden"},
		{"nobody", ask{"POST", "/run", `{"agent":"a"}`, []string{"X-Who: nobody"}}, 401, "unauthorized"},
		{"a page's form", ask{"POST", "/run", `{"agent":"a"}`, []string{
			"Content-Type: application/x-www-form-urlencoded",
			"Origin: http://127.0.0.1",
		}}, 415, "unsupported_media_type"},
		{"a page's text", ask{"POST", "/run", `{"agent":"a"}`, []string{
			"Content-Type: text/plain",
			"Sec-Fetch-Site: same-origin",
		}}, 415, "unsupported_media_type"},
		{
			"curl -d",
			ask{"POST", "/run", `{"agent":"unknown"}`, []string{"Content-Type: application/x-www-form-urlencoded"}},
			404, "not_found",
		},
		{
			"no JSON",
			ask{"POST", "/run", `agent=a`, []string{"Content-Type: application/x-www-form-urlencoded"}},
			400,
			"invalid_request",
		},
		{"zipped", ask{"POST", "/run", `{"agent":"a"}`, []string{"Content-Encoding: gzip"}}, 415, "unsupported_media_type"},
		{"other method", ask{"DELETE", "/run", ``, nil}, 405, "method_not_allowed"},
		{"no path", ask{"GET", "/nowhere", ``, nil}, 404, "not_found"},
		{"no run", ask{"GET", "/runs/x", ``, nil}, 404, "not_found"},
		{"other tenant's", ask{"GET", first["href"].(string), ``, []string{"X-Who: other"}}, 404, "not_found"},
		{
			"another caller's",
			ask{"POST", first["href"].(string) + "/cancel", ``, []string{"X-Who: reader"}},
			403,
			"forbidden",
		},
		{"takes no input", ask{"POST", first["href"].(string) + "/input", `{"input":1}`, nil}, 400, "invalid_request"},
		{"no parameter", ask{"GET", "/runs?limit=0&nope=1", ``, nil}, 400, "invalid_request"},
		{
			"large",
			ask{"POST", first["href"].(string) + "/input", `{"input":"` + strings.Repeat("x", mostInput) + `"}`, nil},
			413, "too_large",
		},
	} {
		resp, body := k.do(c.ask)
		p := object1(t, body)
		if resp.StatusCode != c.status || p["error"] != c.code || p["message"] == "" {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, body)
		}
		if (c.status == 429) != (resp.Header.Get("Retry-After") != "") {
			t.Errorf("%s: Retry-After %q", c.name, resp.Header.Get("Retry-After"))
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		} {
			if resp.Header.Get(name) != want || resp.Header.Get("X-Request-Id") == "" {
				t.Errorf("%s: %v", c.name, resp.Header)
			}
		}
	}
	close(free)
}

// A client that is gone ends its run, unless it has a key to come back by.
func TestGoneClients(t *testing.T) {
	begun, ended := make(chan string, 1), make(chan error, 1)
	free := make(chan struct{})
	k := serve(t, &host{launch: func(ctx context.Context, c *service.Caller, q *service.Request,
		b service.Begin,
	) (*launcher.Report, error) {
		begun <- b.RunID
		select {
		case <-ctx.Done():
		case <-free:
		}
		ended <- ctx.Err()
		return reportOf(c, q, b, launcher.OK), nil
	}}, Options{}, service.Options{})
	leave := func(head ...string) {
		ctx, gone := context.WithCancel(context.Background())
		defer gone()
		answered := make(chan struct{})
		r := k.request(ctx, ask{"POST", "/run", `{"agent":"a"}`, head})
		go func() {
			defer close(answered)
			if resp, err := k.Client().Do(r); err == nil {
				resp.Body.Close()
			}
		}()
		<-begun
		gone()
		<-answered
	}
	leave()
	if <-ended == nil {
		t.Error("the run went on without its client")
	}
	leave("Idempotency-Key: k")
	close(free)
	if status, report := k.run(`{"agent":"a"}`, "Idempotency-Key: k"); status != http.StatusOK ||
		report["outcome"] != "ok" || <-ended != nil {
		t.Errorf("%d %v", status, report)
	}
}

// A service that drains takes nothing, and says so where it is asked whether it is
// ready.
func TestDraining(t *testing.T) {
	k := serve(t, &host{}, Options{}, service.Options{})
	if resp, _ := k.do(ask{path: "/readyz", head: []string{"X-Who: nobody"}}); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	if err := k.service.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if status, p := k.run(`{"agent":"a"}`); status != http.StatusServiceUnavailable || p["error"] != "draining" {
		t.Errorf("%d %v", status, p)
	}
	if resp, body := k.do(ask{path: "/readyz"}); resp.StatusCode != http.StatusServiceUnavailable ||
		!strings.Contains(body, "draining") {
		t.Error(resp.Status, body)
	}
	if resp, _ := k.do(ask{path: "/healthz", head: []string{"X-Who: nobody"}}); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

// Why a service is not ready speaks of its host, and is the operator's alone.
func TestWhyNotReadyIsTheOperators(t *testing.T) {
	ready := func(context.Context) []service.TenantState {
		const why = "the audit log: /home/o has 3 MiB left"
		return []service.TenantState{{Tenant: "default"}, {Tenant: "acme", Reason: why, Waiting: 7}}
	}
	k := serve(t, &host{}, Options{Ready: ready}, service.Options{})
	for who, told := range map[string]bool{"": true, "nobody": false, "reader": false, "launcher": false, "other": false} {
		resp, body := k.do(ask{path: "/readyz", head: []string{"X-Who: " + who}})
		if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, `"unavailable"`) ||
			strings.Contains(body, `"reason":"tenant acme: the audit log: /home/o has 3 MiB left"`) != told ||
			strings.Contains(body, `{"tenant":"acme","reason":"the audit log: /home/o has 3 MiB left","waiting":7}`) != told ||
			strings.Contains(body, "acme") != told {
			t.Errorf("%q: %s %s", who, resp.Status, body)
		}
	}
}

// Who asks of a run that there is not is told where the others are, and so is who
// names none; nothing tells another tenant's run from one that there is not.
func TestARunThatThereIsNot(t *testing.T) {
	h := &host{log: &log{}}
	h.log.add(oldRun, 1)
	k := serve(t, h, Options{}, service.Options{})
	for path, why := range map[string]string{
		"/runs/" + oldRun:             "there is no run " + oldRun,
		"/runs/" + oldRun + "/events": "there is no run " + oldRun,
		"/runs/x":                     "no id of a run; one looks like 0",
	} {
		resp, body := k.do(ask{path: path, head: []string{"X-Who: other"}})
		if resp.StatusCode != http.StatusNotFound || !strings.Contains(body, why) ||
			!strings.Contains(body, "GET /runs lists") {
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
	}
	if resp, body := k.do(ask{path: "/runs/" + oldRun}); resp.StatusCode != http.StatusOK {
		t.Errorf("control: %s %s", resp.Status, body)
	}
}

// FuzzRun holds row A54: no body is answered by 500, by a panic or with what it
// holds.
func FuzzRun(f *testing.F) {
	for body := range badBodies() {
		f.Add([]byte(body))
	}
	f.Add([]byte(`{"agent":"a","input":"x","policy":{"limits":{"max_steps":1}}}`))
	h := serve(f, &host{}, Options{}, service.Options{}).Config.Handler
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/run", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		text := w.Body.String()
		switch w.Code {
		case http.StatusOK, http.StatusAccepted, http.StatusBadRequest, http.StatusNotFound:
		default:
			t.Errorf("%d: %s", w.Code, text)
		}
		var before any
		if object1(t, text); w.Code < 300 && json.Unmarshal(body, &before) != nil {
			t.Errorf("%q was taken for JSON", body)
		}
	})
}

// What a refusal says to run is one command, whatever a bundle asked for.
func TestARefusalQuotesWhatABundleWrote(t *testing.T) {
	f := violations(&service.ViolationError{
		RunID:      "r",
		Violations: []launcher.Violation{{Capability: "fs:read:/it'; touch pwned"}},
	})
	if want := "explain 'fs:read:/it'\\''; touch pwned' --run r"; !strings.Contains(f.Text, want) {
		t.Errorf("%s has no %s", f.Text, want)
	}
}

// A command is told only where there is a capability to explain, and is of the
// first violation that has one.
func TestARefusalExplainsCapabilitiesAlone(t *testing.T) {
	without := launcher.Violation{Code: caps.Unavailable, Message: "leads through a link", Layer: "base"}
	if f := violations(&service.ViolationError{
		RunID:      "r",
		Violations: []launcher.Violation{without},
	}); strings.Contains(f.Text, "caps explain") || strings.Contains(f.Text,
		"that took") {
		t.Error(f.Text)
	}
	with := launcher.Violation{Capability: "fs:read:/b", Layer: "base"}
	if f := violations(&service.ViolationError{RunID: "r", Violations: []launcher.Violation{
		without,
		with,
	}}); !strings.Contains(f.Text, "explain fs:read:/b --run r") {
		t.Error(f.Text)
	}
}

// What to edit is advised by whose layer took it, whatever that is called.
func TestARefusalAdvisesByTheDoorsLayer(t *testing.T) {
	for _, byDoor := range []bool{true, false} {
		f := violations(&service.ViolationError{
			RunID:      "r",
			Violations: []launcher.Violation{{Layer: "profile:runner_default"}}, ByDoor: byDoor, Warnings: []string{"w"},
		})
		if text, err := json.Marshal(f); err != nil || !strings.Contains(string(text), `"warnings":["w"]`) {
			t.Errorf("%s %v", text, err)
		}
		if strings.Contains(f.Text, "run_grant") != byDoor {
			t.Errorf("by the door %v: %s", byDoor, f.Text)
		}
	}
}

// What no reader takes is no body, and no field of one. Control: the good one is.
func TestNoBodyIsReadTwoWays(t *testing.T) {
	k := serve(t, &host{launch: func(_ context.Context, c *service.Caller, q *service.Request,
		b service.Begin,
	) (*launcher.Report, error) {
		return reportOf(c, q, b, launcher.OK), nil
	}}, Options{}, service.Options{})
	bad, good := jsontest.Documents(`{"agent":"a","input":%s}`)
	if status, problem := k.run(good); status != http.StatusOK {
		t.Errorf("control: %d %v", status, problem)
	}
	for name, body := range bad {
		if status, problem := k.run(body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", name, status, problem)
		}
	}
}
