package modelapi

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/model"
	"runloop.dev/rlp/internal/effect/model/modeltest"
	"runloop.dev/rlp/internal/effect/model/providers"
	"runloop.dev/rlp/internal/record/audit"
)

// A rig is a run that may use models of two providers, which are servers on loopback.
type rig struct {
	log    *audit.Memory
	judge  sync.Mutex
	front  *httptest.Server
	behind map[string]*modeltest.Server
}

const grant = `schema = "0.2"
[capabilities]
model = ["openai:some", "openai:odd", "openai:mixed", "openai:limited", "openai:busy", "openai:later", "openai:broken",
  "openai:locked", "openai:vectors", "openai:tools", "anthropic:some", "anthropic:odd", "anthropic:mixed", "anthropic:limited",
  "anthropic:busy", "anthropic:later", "anthropic:broken", "anthropic:locked", "anthropic:tools", "local:echo"]
`

func open(t testing.TB, text string, change ...func(*hostcalls.Config)) *rig {
	t.Helper()
	r := &rig{log: audit.NewMemory(), behind: map[string]*modeltest.Server{}}
	cfg := model.Config{
		Default: model.Echo, Backend: providers.New(providers.Options{Backoff: time.Millisecond}), Now: time.Now,
		Key: func(context.Context, string) (string, error) { return modeltest.Key, nil },
	}
	for _, kind := range []string{"openai", "anthropic"} {
		s := modeltest.Start(t, kind)
		r.behind[kind] = s
		cfg.Providers = append(cfg.Providers, model.Provider{ID: kind, Kind: kind, BaseURL: s.URL, SecretID: "runloop/m/key"})
	}
	base, findings := policy.ParseBase("policy.caps", []byte(text), policy.Options{})
	if err := policy.AsError(findings); err != nil {
		t.Fatal(err)
	}
	set, err := caps.Base(base.Entries, base.Limits)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(set, r.log, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1})
	if err != nil {
		t.Fatal(err)
	}
	host := hostcalls.Config{
		Gate: g, Components: hostcalls.Components{Model: model.New(cfg)}, Limits: base.Limits,
		Now: func() int64 { return time.Now().UnixNano() },
	}
	for _, c := range change {
		c(&host)
	}
	p, err := hostcalls.NewProgramHost(hostcalls.New(host), &r.judge)
	if err != nil {
		t.Fatal(err)
	}
	r.front = httptest.NewServer(&Handler{Asker: p, Now: time.Now})
	t.Cleanup(r.front.Close)
	return r
}
