package access

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/serve/service"
)

// a kit is a service's doors, with tokens of their own.
type kit struct {
	*Access
	store *Store
}

// kitOf makes doors at port 8770; change may change what they are made of.
func kitOf(t testing.TB, change func(*Options)) *kit {
	t.Helper()
	store := OpenStore(filepath.Join(t.TempDir(), "tokens"), time.Now)
	o := Options{
		Tokens: store, UID: 1000, Tenant: "default", Port: 8770, Now: time.Now,
		Layers: func(_ context.Context, k *Token) ([]*caps.Layer, error) {
			return []*caps.Layer{{Name: k.Caller()}}, nil
		},
	}
	if change != nil {
		change(&o)
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &kit{a, store}
}

// token makes a token of a tenant.
func (k *kit) token(t testing.TB, change func(*Token)) (*Token, string) {
	t.Helper()
	token := Token{Name: "ci", Tenant: "acme", May: service.Launch | service.Read}
	if change != nil {
		change(&token)
	}
	made, text, err := k.store.New(token)
	if err != nil {
		t.Fatal(err)
	}
	return made, text
}

// request is one to /runs with headers, given in pairs.
func request(t testing.TB, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/runs", nil)
	r.Host, r.RemoteAddr = "127.0.0.1:8770", "192.0.2.1:1234"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// bearer is a request with a token.
func bearer(t testing.TB, token string, headers ...string) *http.Request {
	return request(t, append([]string{"Authorization", "Bearer " + token}, headers...)...)
}

// status is how an attempt ended: 200, or why not.
func (k *kit) status(t testing.TB, r *http.Request) int {
	t.Helper()
	c, err := k.Authenticate(r)
	if err == nil {
		if c == nil || c.Tenant == "" {
			t.Fatalf("nobody is let in: %+v", c)
		}
		return http.StatusOK
	}
	if c != nil {
		t.Fatalf("a caller beside an error: %+v", c)
	}
	return asDenied(err).Status
}

// wrongOf is the token text with another secret. The last letter of a secret
// holds one bit, an a or a q: "aa" in its place may be what was there.
func wrongOf(text string) string { return text[:len(text)-1] + "2" }
