package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/ask"
)

// A run of an agent that is installed no more is explained from its records to who
// operates, and to nobody else: they hold paths of the host.
func TestARunIsExplainedWithoutItsBundle(t *testing.T) {
	h := testingHost(t, "")
	hosttest.Install(t, h.home, "plain", "kb_read = [\"notes\"]\n", hosttest.Importing(t))
	h.put(t, "caps/overrides/plain.toml", "[capabilities]\nkb_read = []\n")
	r, err := h.do(t, &service.Request{Door: service.HTTP, Agent: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(h.home, "agents", "plain")); err != nil {
		t.Fatal(err)
	}
	who := service.Caller{Name: "token:t", Tenant: "default", May: service.Read}
	q := ask.Query{Text: "kb:read:notes", Run: r.RunID}
	if _, err := h.Explain(t.Context(), &who, "plain", q); !errors.Is(err, service.ErrNotFound) {
		t.Errorf("to who may only read: %v", err)
	}
	who.May |= service.Operate
	e, err := h.Explain(t.Context(), &who, "plain", q)
	if err != nil {
		t.Fatal(err)
	}
	if e.Allow || e.Layer != "override:plain.toml" || e.Past == nil || len(e.Past.Notes) > 0 {
		t.Errorf("%+v of %+v", e, e.Past)
	}
	if _, err := h.Explain(t.Context(), &who, "plain", ask.Query{Text: q.Text}); !errors.Is(err, service.ErrNotFound) {
		t.Errorf("the control, without a run: %v", err)
	}
}
