package secrets

import (
	"bytes"
	"testing"
)

// A name that stands for no secret of any tenant gives nothing away: neither a
// tenant nor an id.
func TestEnvNamesThatAreNone(t *testing.T) {
	id, err := ParseID("runloop/a/b")
	if err != nil {
		t.Fatal(err)
	}
	if tenant, got, ok := ParseEnvName(EnvName("acme", id)); !ok || tenant != "acme" || got != id {
		t.Fatalf("control: %q %v %v", tenant, got, ok)
	}
	for _, rest := range []string{
		"", "acme", "acme_0a", "acme_0a_0b_0c", "acme_0a_0b_", "acme_0a_0b_3", "acme_0a_0",
		"acme_0_0b", "acme_0a_0b%", "acme_0a_0b_2_2/x", "acme_0_0", "acme_0a-b_0c", "acme_0a.b_0c", "ac-me_0a_0b",
		"acme_0a_0b=x",
	} {
		if tenant, got, ok := ParseEnvName(EnvPrefix + rest); ok || tenant != "" || got != (ID{}) {
			t.Errorf("%q: %q %v %v", rest, tenant, got, ok)
		}
	}
	if tenant, got, ok := ParseEnvName("acme_0a_0b"); ok || tenant != "" || got != (ID{}) {
		t.Errorf("without its prefix: %q %v %v", tenant, got, ok)
	}
}

// A value may be as long as it may be, and not a byte longer.
func TestBoundsOfValues(t *testing.T) {
	for n, want := range map[int]bool{MaxValue: true, MaxValue + 1: false} {
		if err := CheckValue(bytes.Repeat([]byte("x"), n)); (err == nil) != want {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
