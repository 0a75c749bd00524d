package api

import (
	"net/http"
	"strings"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/serve/service"
)

// query refuses parameters that a path does not have, and those given twice.
func query(r *http.Request, known []parameter) error {
	var problems service.FieldErrors
	values := r.URL.Query()
	var names []string
	for _, p := range known {
		names = append(names, p.name)
		if n := len(values[p.name]); n > 1 {
			problems = append(problems, service.FieldError{Field: p.name, Why: "is there twice; keep one"})
		}
		delete(values, p.name)
	}
	for name := range values {
		why := "there is no such parameter here"
		if len(names) > 0 {
			why += "; there are " + strings.Join(names, ", ")
		}
		problems = append(problems, service.FieldError{Field: strictjson.Shown(name), Why: why})
	}
	if len(problems) > mostProblems {
		problems = problems[:mostProblems]
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}
