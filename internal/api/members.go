package api

import (
	"bytes"

	"runloop.dev/rlp/internal/schema"
	"runloop.dev/rlp/internal/service"
)

// mostProblems bounds how many problems of a request are told.
const mostProblems = 100

// members are those of the object that a body is. All that is wrong is in the
// problems; the members are those that could be told apart.
func members(body []byte) ([]schema.Member, service.FieldErrors) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, service.FieldErrors{{Field: "", Why: `the body is empty; send a JSON object, such as {"agent": "NAME"}`}}
	}
	doc, found := schema.Scan(body)
	if len(found) == 0 && doc.Raw[0] != '{' {
		return nil, service.FieldErrors{{Field: "", Why: "the body is " + kindOf(doc.Raw) + ", not an object"}}
	}
	var problems service.FieldErrors
	for _, p := range found {
		if p.Path == "" {
			p.Why = "the body " + p.Why
		}
		problems = append(problems, service.FieldError{Field: p.Path, Why: p.Why})
	}
	return doc.Members, problems
}

// kindOf names what a value is.
func kindOf(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
