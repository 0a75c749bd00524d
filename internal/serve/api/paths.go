package api

import (
	"fmt"
	"net/http"
	"path"
	"strings"
)

// apart answers paths that begin as one of the API's and are none, before anybody
// makes a page of them or leads elsewhere: m would take the slips out of them and
// say where to ask again, which programs do or do not do.
func (a *responder) apart(m *http.ServeMux) http.Handler {
	whole, first := map[string]bool{mcpPath: true}, map[string]bool{firstOf(mcpPath): true}
	for _, rt := range routes() {
		whole[rt.path], first[firstOf(rt.path)] = true, true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		meant := path.Clean("/" + r.URL.Path)
		_, pattern := m.Handler(r)
		if !first[firstOf(meant)] || meant == r.URL.Path && pattern != "/" {
			m.ServeHTTP(w, r)
			return
		}
		noteOf(r).route = "/"
		f := *errNoPath
		if whole[meant] && meant != r.URL.Path { // no word of a stranger's is told back
			f.Text = fmt.Sprintf("there is no such path here; ask %s, with no slash at its end and one where one is", meant)
		}
		a.fail(w, r, &f)
	})
}

// firstOf is the first segment of a clean path.
func firstOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}
