package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/service"
)

// A path that begins as one of the API's is answered in JSON, whatever follows:
// a program that slips finds no page, and is led nowhere else.
func TestSlipsOfPathsAreAnsweredInJSON(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
	})
	h := serve(t, &host{}, Options{Console: page, MCP: page}, service.Options{}).Config.Handler
	answered := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(`{"agent":"a"}`))
		r.URL.Path = path
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	slips := []string{
		"//run", "/run/x", "/./run", "/runs/../run", "/runs/a/b/c", "/runs/" + oldRun + "//events", "/audit/heads", "/mcp/",
		"/mcp/x", "/runs/.", "/openapi.json/x",
	}
	for _, rt := range routes() {
		slips = append(slips, rt.path+"/", "/"+rt.path)
	}
	for _, path := range slips {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			w := answered(method, path)
			if kind := w.Header().Get("Content-Type"); w.Code != http.StatusNotFound || !strings.HasPrefix(kind,
				"application/json") || object1(t, w.Body.String())["error"] != "not_found" {
				t.Errorf("%s %s: %d %s %s", method, path, w.Code, kind, w.Body)
			}
		}
	}
	if w := answered(http.MethodPost, "/run/"); !strings.Contains(w.Body.String(), "ask /run,") {
		t.Error(w.Body)
	}
	for _, path := range []string{"/", "/ui/agents", "/nowhere", "/runners", "/ui/run/", "/mcp"} { // controls
		if w := answered(http.MethodGet, path); !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := answered(http.MethodPost, "/run"); w.Code != http.StatusOK {
		t.Error(w.Code, w.Body)
	}
}

// A body that begins with the mark which some programs write before UTF-8 is
// refused by name.
func TestByteOrderMark(t *testing.T) {
	k := serve(t, &host{}, Options{}, service.Options{})
	for mark, want := range map[string]string{
		"\ufeff": "byte order mark", "\ufeff\ufeff": "byte order mark",
		"\xff\xfe": "UTF-8",
	} {
		if status, p := k.run(mark + `{"agent":"a"}`); status != http.StatusBadRequest || p["error"] != "invalid_request" ||
			!strings.Contains(p["message"].(string), want) {
			t.Errorf("%q: %d %v", mark, status, p)
		}
	}
	// it is a letter anywhere else
	if status, p := k.run(`{"agent":"a","input":"` + "\ufeff" + `"}`); status != http.StatusOK {
		t.Error(status, p)
	}
}
