package host

import (
	"os"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
)

// Who reads of a tenant that nobody used, whose name an operator mistyped perhaps,
// makes nothing; a log that was asked for before shows what comes.
func TestReadingMakesNoTenant(t *testing.T) {
	h := testingHost(t, "")
	operator := &service.Caller{Name: "user:1", Tenant: "acmee", May: service.Read | service.Operate}
	log, err := h.Log(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	runs := func() (n int) {
		for _, err := range log.Runs(t.Context(), kb.RunQuery{}) {
			if n++; err != nil {
				t.Error(err)
			}
		}
		for _, err := range log.Lines(t.Context(), kb.Filter{}) {
			if n++; err != nil {
				t.Error(err)
			}
		}
		return n
	}
	head, err := log.Head(t.Context())
	v, verr := h.Verify(t.Context(), operator)
	if err != nil || verr != nil || head.Size != 0 || runs() != 0 || v.Size != 0 {
		t.Errorf("%v, %v, %+v, %+v", err, verr, head, v)
	}
	folder := filepath.Join(h.home, "tenants", "acmee")
	if _, err := os.Lstat(folder); err == nil {
		t.Error("reading made the folder of a tenant")
	}
	for _, s := range h.Ready(t.Context()) {
		if s.Tenant == "acmee" {
			t.Error("a tenant that nobody used is tried")
		}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if runs(); !h.tenants["acmee"] {
		t.Error("control: the log of a tenant that is there was not opened")
	}
}
