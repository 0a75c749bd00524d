package api

import (
	"encoding/json"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/schema"
	"runloop.dev/rlp/internal/serve/service"
)

// A caller's description of the service has the schemas of what its agents are given,
// each within which its references lead, and holds the body of POST /run against them;
// nobody else is told which agents there are.
//
//rlp:holds D16
func TestTheDescriptionHasTheInputsOfAgents(t *testing.T) {
	const with = `{"type":"object","properties":{"to":{"$ref":"#/$defs/name"}},"$defs":{"name":{"type":"string"}}}`
	host := &host{agents: []service.Agent{
		{Name: "mailer", InputSchema: []byte(with)},
		{Name: "any"},
		{Name: "odd", InputSchema: []byte(`true`)},
		{Name: "plain", InputSchema: []byte(`{"type":"array"}`)},
	}}
	k := serve(t, host, Options{}, service.Options{})
	_, text := k.do(ask{path: "/openapi.json", head: []string{"X-Who: launcher"}})
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Schema json.RawMessage }
			}
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Input.mailer": `"$id":"urn:rlp:input:mailer"`, "Input.plain": `{"type":"array"}`, "RunRequest": `"properties"`,
	} {
		if got := string(doc.Components.Schemas[name]); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	body := doc.Paths["/run"]["post"].RequestBody.Content["application/json"].Schema
	defs, _ := json.Marshal(map[string]any{"$defs": doc.Components.Schemas, "allOf": []any{body}})
	defs = []byte(strings.NewReplacer("#/components/schemas/", "#/$defs/", `"$id":"urn:rlp:input:mailer",`, "",
		"#/$defs/name", "#/$defs/Input.mailer/$defs/name").Replace(string(defs))) // one document, to check by
	checks, err := schema.Compile(defs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for request, fits := range map[string]bool{
		`{"agent":"mailer","input":{"to":"a"}}`: true, `{"agent":"mailer","input":{"to":1}}`: false,
		`{"agent":"plain","input":[]}`: true, `{"agent":"plain","input":{"to":1}}`: false, `{"agent":"any","input":7}`: true,
	} {
		v, err := schema.Decode([]byte(request))
		if err != nil {
			t.Fatal(err)
		}
		if err := checks.Check(v); (err == nil) != fits {
			t.Errorf("%s: %v", request, err)
		}
	}
	for _, who := range []string{"X-Who: nobody"} {
		if _, text := k.do(ask{path: "/openapi.json", head: []string{who}}); strings.Contains(text, "Input.") {
			t.Errorf("%s is told of agents", who)
		}
	}
}
