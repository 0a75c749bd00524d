package api

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/service"
)

// What docs/service.md shows can be asked: its requests are taken, its paths and the
// codes of its errors are those that there are.
func TestPageOfHTTP(t *testing.T) {
	text, err := os.ReadFile("../../../docs/service.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, found := strings.Cut(string(text), "\n## HTTP\n")
	if !found {
		t.Fatal("there is no section of HTTP")
	}
	k := serve(t, &host{}, Options{}, service.Options{})
	requests := regexp.MustCompile(`(?m)^ {4}ask (/\S+) -d '(.*)'$`).FindAllStringSubmatch(page, -1)
	if len(requests) == 0 {
		t.Error("no request is shown")
	}
	for _, m := range requests {
		if resp, body := k.do(ask{http.MethodPost, m[1], m[2], nil}); resp.StatusCode >= http.StatusBadRequest {
			t.Errorf("%s: %s", m[0], body)
		}
	}
	for _, rt := range routes() {
		if !strings.Contains(page, "`"+rt.method+" "+rt.path) && !strings.Contains(page, "`"+rt.path+"`") {
			t.Errorf("%s %s is not told of", rt.method, rt.path)
		}
		for _, p := range rt.query {
			if strings.Contains(p.name, "[") {
				continue
			}
			if !strings.Contains(page, p.name+"=") {
				t.Errorf("%s: the parameter %s is not told of", rt.path, p.name)
			}
		}
	}
	for _, code := range []string{
		"invalid_request", "unauthorized", "policy_violation", "forbidden", "not_found", "method_not_allowed", "timeout",
		"unsupported_media_type", "conflict", "too_large", "busy",
		"draining", "unavailable",
	} {
		if !strings.Contains(page, "`"+code+"`") {
			t.Errorf("the error %s is not told of", code)
		}
	}
}
