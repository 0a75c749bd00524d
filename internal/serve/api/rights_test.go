package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// Every route is refused to each caller without one of its rights before anything
// of the request is read, and reached by each that has one.
func TestRightsAreAskedFirst(t *testing.T) {
	for _, rt := range routes() {
		if !rt.open && rt.may == 0 {
			t.Errorf("%s %s asks for no right", rt.method, rt.path)
		}
		for may := range service.Launch | service.Read | service.Operate + 1 {
			for _, c := range []*service.Caller{nil, {Name: "x", Tenant: "", May: may}, {
				Name: "x", Tenant: "default",
				May: may,
			}} {
				reached := false
				one := rt
				one.serve = func(*server, http.ResponseWriter, *http.Request, *service.Caller) error {
					reached = true
					return nil
				}
				one.query = []parameter{{"other", ""}} // a query that is wrong is told to those who may ask
				s := &server{responder: responder{opt: &Options{Now: time.Now}}}
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(service.WithCaller(context.Background(), c), rt.method, filled(rt.path),
					strings.NewReader("{"))
				s.route(one).ServeHTTP(w, r)
				want := rt.open || c != nil && c.Tenant != "" && c.May&rt.may != 0
				if w.Code == http.StatusForbidden && !strings.Contains(w.Body.String(), "takes the right to "+rt.may.String()+":") {
					t.Errorf("%s %s by %+v: %s", rt.method, rt.path, c, w.Body)
				}
				if reached != want || !want && w.Code != http.StatusForbidden && w.Code != http.StatusUnauthorized {
					t.Errorf("%s %s by %+v: reached %t, %d", rt.method, rt.path, c, reached, w.Code)
				}
			}
		}
	}
	forgotten := &route{path: "/forgotten"}
	if err := forgotten.permits(&service.Caller{Name: "x", Tenant: "default", May: anyRight}); err == nil {
		t.Error("a route that asks for no right is open to whoever was proved")
	}
}
