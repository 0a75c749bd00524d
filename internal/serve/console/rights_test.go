package console

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
)

// An untouched host fails its test when anything is asked of it, and answers
// nothing.
type untouched struct {
	t       *testing.T
	allowed bool // nothing fails
	asked   int
}

func (u *untouched) touch() error {
	if u.asked++; !u.allowed {
		u.t.Helper()
		u.t.Error("the host was asked before the rights were")
	}
	return service.ErrNotFound
}

func (u *untouched) Check(context.Context, *service.Caller, *service.Request) error { return u.touch() }

func (u *untouched) Launch(context.Context, *service.Caller, *service.Request, service.Begin) (*launcher.Report,
	error,
) {
	return nil, u.touch()
}

func (u *untouched) Log(context.Context, *service.Caller) (service.Log, error) { return nil, u.touch() }

func (u *untouched) Surface(context.Context, *service.Caller, service.Door) (*service.Surface, error) {
	return nil, u.touch()
}

func (u *untouched) Agents(context.Context, *service.Caller) ([]service.Agent, error) {
	return nil, u.touch()
}

func (u *untouched) SomeAgents(context.Context, *service.Caller, service.AgentQuery) ([]service.Agent, error) {
	return nil, u.touch()
}

func (u *untouched) Inspect(context.Context, *service.Caller, string) (*ask.Inspection, error) {
	return nil, u.touch()
}

func (u *untouched) Holding(context.Context, *service.Caller, string) (*ask.Holding, error) {
	return nil, u.touch()
}

func (u *untouched) Explain(context.Context, *service.Caller, string, ask.Query) (*ask.Explanation, error) {
	return nil, u.touch()
}

func (u *untouched) Override(context.Context, *service.Caller, string) (*ask.Override, error) {
	return nil, u.touch()
}

func (u *untouched) TryOverride(context.Context, *service.Caller, string, ask.Trial) (*ask.Override, error) {
	return nil, u.touch()
}

func (u *untouched) WhatIf(context.Context, *service.Caller, string, []byte) (*ask.Forecast, error) {
	return nil, u.touch()
}

func (u *untouched) Suggest(context.Context, *service.Caller, string) (*ask.Suggestion, error) {
	return nil, u.touch()
}

func (u *untouched) Verify(context.Context, *service.Caller) (*ask.Verification, error) {
	return nil, u.touch()
}

func (u *untouched) ChangedServers(context.Context, *service.Caller) ([]ask.ChangedServer, error) {
	return nil, u.touch()
}

func (u *untouched) Submit(context.Context, *service.Caller, *service.Request, string) (*service.Run, error) {
	return nil, u.touch()
}

func (u *untouched) Lanes(context.Context, *service.Caller) (*ask.LaneSurvey, error) {
	return nil, u.touch()
}

func (u *untouched) Runs(context.Context, *service.Caller) []service.State { u.touch(); return nil }

func (u *untouched) Run(context.Context, *service.Caller, string) (*service.Run, error) {
	return nil, u.touch()
}

func (u *untouched) Cancel(context.Context, *service.Caller, string) error { return u.touch() }

// all are callers with each set of rights, of a tenant and of none.
func all() iter.Seq[*service.Caller] {
	return func(yield func(*service.Caller) bool) {
		if !yield(nil) {
			return
		}
		for may := range service.Launch | service.Read | service.Operate + 1 {
			for _, tenant := range []string{"", "default"} {
				if !yield(&service.Caller{Name: "token:x", Tenant: tenant, May: may}) {
					return
				}
			}
		}
	}
}

// Every page is refused to each caller without its rights before anything is
// looked at, and reached by each that has them.
func TestRightsAreAskedFirst(t *testing.T) {
	c := New(Options{Runs: &untouched{}, Host: &untouched{}, Now: clockOfTests}).(*console)
	fill := strings.NewReplacer("{$}", "", "{id}", runID(0), "{seq}", "1", "{name}", "notes_digest")
	for _, rt := range c.routes() {
		method, path, named := strings.Cut(rt.pattern, " ")
		if !named {
			method, path = http.MethodGet, "/ui/nothing"
		}
		if rt.may == 0 {
			t.Errorf("%s asks for no right", rt.pattern)
		}
		reached, u := 0, &untouched{t: t}
		pages := New(Options{Runs: u, Host: u, Now: clockOfTests})
		for caller := range all() {
			u.allowed, u.asked = caller.Can(rt.may), 0
			h := as(pages, caller)
			r := httptest.NewRequestWithContext(t.Context(), method, fill.Replace(path), strings.NewReader("text=x"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if refused := w.Code == http.StatusForbidden; refused != !caller.Can(rt.may) {
				t.Errorf("%s by %+v: %d", rt.pattern, caller, w.Code)
			}
			reached += u.asked
		}
		// what the service remembers, and what there is not, is asked of nobody
		if local := rt.pattern == "GET /ui/lanes" || rt.pattern == "GET /ui/launch" || !named; reached == 0 && !local {
			t.Errorf("control: %s was reached by nobody", rt.pattern)
		}
	}
	h := c.serve(route{"/forgotten", 0, func(*http.Request, *service.Caller) (*view, error) {
		t.Error("a page that asks for no right was reached")
		return nil, service.ErrNotFound
	}})
	w := httptest.NewRecorder()
	as(h, operator()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/forgotten", nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("a page that asks for no right: %d", w.Code)
	}
}
