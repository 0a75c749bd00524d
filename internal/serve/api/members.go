package api

import (
	"bytes"
	"errors"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/serve/service"
)

// mostProblems bounds how many problems of a request are told.
const mostProblems = 100

// members are those of the object that a body is.
func members(body []byte) ([]strictjson.Member, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, service.FieldErrors{{Why: `the body is empty; send a JSON object, such as {"agent": "NAME"}`}}
	}
	list, err := strictjson.Members(body)
	var at *strictjson.Error
	if !errors.As(err, &at) {
		return list, err
	}
	why := at.Why()
	if at.Path == "" {
		why = "the body: " + why
	}
	return nil, service.FieldErrors{{Field: at.Path, Why: why}}
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
