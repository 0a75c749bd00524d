package api

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/schema"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// A description is /openapi.json, as who reads it sees it.
type description struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]map[string]struct {
		ID         string `json:"operationId"`
		Parameters []struct{ Name, In string }
		Body       *struct{ Content map[string]media } `json:"requestBody"`
		Responses  map[string]struct {
			Description string
			Content     map[string]media
		}
	}
	Components struct{ Schemas map[string]json.RawMessage }
}

type media struct {
	Schema struct {
		Ref  string `json:"$ref"`
		Type string
	}
}

func describe(t testing.TB, text []byte) *description {
	t.Helper()
	var d description
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// compile makes a schema of the document usable by itself.
func (d *description) compile(t testing.TB, name string) *schema.Schema {
	t.Helper()
	all, err := json.Marshal(map[string]any{"$ref": "#/components/schemas/" + name, "$defs": d.Components.Schemas})
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile([]byte(strings.ReplaceAll(string(all), "#/components/schemas/", "#/$defs/")), nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

// holds reports whether an answer is one that the document tells of, and its body
// what the document says; it returns which.
func (d *description) holds(t testing.TB, a ask, resp *http.Response, body string) string {
	t.Helper()
	path, _, _ := strings.Cut(a.path, "?")
	for pattern, methods := range d.Paths {
		like := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\{id\}`, "[^/]+") + "$")
		op, there := methods[strings.ToLower(a.method)]
		if !like.MatchString(path) || !there {
			continue
		}
		told, there := op.Responses[strconv.Itoa(resp.StatusCode)]
		name := fmt.Sprintf("%s %s %d", a.method, pattern, resp.StatusCode)
		if !there {
			t.Errorf("%s is not in the document: %.200s", name, body)
			return name
		}
		kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
		m, there := told.Content[kind]
		switch {
		case len(told.Content) == 0 && body == "":
		case !there:
			t.Errorf("%s has a body of %q, of which the document does not tell", name, kind)
		case m.Schema.Ref != "":
			v, err := schema.Decode([]byte(body))
			if err == nil {
				err = d.compile(t, strings.TrimPrefix(m.Schema.Ref, "#/components/schemas/")).Check(v)
			}
			if err != nil {
				t.Errorf("%s: %v: %.300s", name, err, body)
			}
		}
		return name + " " + kind
	}
	t.Errorf("%s %s is not in the document", a.method, a.path)
	return ""
}

// The document has every route and nothing else, refers to schemas that are there,
// and gives each path its parameters.
func TestDocument(t *testing.T) {
	d := describe(t, document(routes(), nil))
	if d.OpenAPI != "3.1.0" {
		t.Error(d.OpenAPI)
	}
	n, ids, used := 0, map[string]bool{}, map[string]bool{}
	use := func(content map[string]media) {
		for kind, m := range content {
			name := strings.TrimPrefix(m.Schema.Ref, "#/components/schemas/")
			if used[name] = true; name != "" && d.Components.Schemas[name] == nil || name == "" && m.Schema.Type == "" {
				t.Errorf("no schema %q of %s", name, kind)
			}
		}
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			if n++; ids[op.ID] || op.ID == "" {
				t.Errorf("%s %s: the id %q", method, path, op.ID)
			}
			ids[op.ID] = true
			var in []string
			for _, p := range op.Parameters {
				if p.In == "path" {
					in = append(in, "{"+p.Name+"}")
				}
			}
			if want := regexp.MustCompile(`\{\w+\}`).FindAllString(path, -1); !slices.Equal(in, want) {
				t.Errorf("%s has the parameters %q", path, in)
			}
			if op.Body != nil {
				use(op.Body.Content)
			}
			for status, r := range op.Responses {
				if use(r.Content); r.Description == "" {
					t.Errorf("%s %s %s has no description", method, path, status)
				}
			}
		}
	}
	if n != len(routes()) {
		t.Errorf("%d of %d routes", n, len(routes()))
	}
	for name := range d.Components.Schemas {
		d.compile(t, name)
	}
}

// The schemas have the fields that the types have, and those alone.
func TestSchemasAreTheTypes(t *testing.T) {
	d := describe(t, document(routes(), nil))
	for name, v := range map[string]any{
		"Report": launcher.Report{}, "Violation": launcher.Violation{}, "State": service.State{}, "Run": one{},
		"Runs": page{}, "Records": records{}, "Head": treeHead{},
		"Agent": agent{}, "Surface": service.Surface{}, "SurfaceFamily": service.SurfaceFamily{}, "Acceptance": acceptance{},
		"Health": health{}, "Problem": failure{},
	} {
		var s struct {
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(d.Components.Schemas[name], &s); err != nil {
			t.Fatal(err)
		}
		known, always := fieldsOfType(reflect.TypeOf(v))
		for field := range s.Properties {
			if !slices.Contains(known, field) {
				t.Errorf("%s.%s is no field of the type", name, field)
			}
		}
		for _, field := range known {
			if s.Properties[field] == nil {
				t.Errorf("%s lacks %s", name, field)
			}
		}
		for _, field := range always {
			if !slices.Contains(s.Required, field) {
				t.Errorf("%s.%s is always there, and not required", name, field)
			}
		}
	}
	var s struct{ Properties map[string]any }
	if err := json.Unmarshal(d.Components.Schemas["RunRequest"], &s); err != nil {
		t.Fatal(err)
	}
	for name := range runFields() {
		if s.Properties[name] == nil {
			t.Errorf("RunRequest lacks %s", name)
		}
	}
	if len(s.Properties) != len(runFields()) {
		t.Error("RunRequest has fields that POST /run does not take")
	}
}

// fieldsOfType are the names of a type's fields in JSON, and those that are never
// left out.
func fieldsOfType(t reflect.Type) (known, always []string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			k, a := fieldsOfType(f.Type)
			known, always = append(known, k...), append(always, a...)
		case name == "-" || name == "":
		default:
			known = append(known, name)
			if !strings.Contains(options, "omit") {
				always = append(always, name)
			}
		}
	}
	return known, always
}

// For each family /capabilities tells its verbs, its tier, its usual effect
// and what it is like.
// What is told is what is left, and by whom the rest was taken.
//
//rlp:holds A45 A46
func TestCapabilities(t *testing.T) {
	k := serve(t, &host{}, Options{}, service.Options{})
	for path, grant := range map[string]string{
		"/capabilities": "http_default", "/capabilities?door=http": "http_default",
		"/capabilities?door=mcp": "mcp_default",
	} {
		_, body := k.do(ask{path: path, head: []string{"X-Who: launcher"}})
		v := object1(t, body)
		families, _ := v["families"].([]any)
		if v["grant"] != grant || len(families) != 2 {
			t.Fatalf("%s: %s", path, body)
		}
		for _, f := range families {
			m, _ := f.(map[string]any)
			for _, key := range []string{
				"name", "privilege_tier", "effect_default", "destructive", "network_facing",
				"sandbox_safe", "verbs", "available",
			} {
				if _, there := m[key]; !there {
					t.Errorf("%v lacks %s", m["name"], key)
				}
			}
			if m["available"] == false && m["taken_by"] != "runner_default" {
				t.Errorf("%v: nobody took it", m["name"])
			}
		}
	}
	if resp, body := k.do(ask{path: "/capabilities?door=ftp"}); resp.StatusCode != http.StatusBadRequest {
		t.Error(body)
	}
}

// Runs in memory and runs of the log are one list, the newest first and each once,
// whatever the size of its pages.
func TestPagesOfRuns(t *testing.T) {
	h := &host{log: &log{}}
	for i := range 7 {
		h.log.add(fmt.Sprintf("019ab0de-79ea-74f8-9d3e-6d0c3f0a1b%02x", i), 1)
	}
	k := serve(t, h, Options{}, service.Options{})
	var want []string
	for range 3 {
		_, report := k.run(`{"agent":"a"}`)
		id, _ := report["run_id"].(string)
		want = append([]string{id}, want...)
	}
	h.log.add(want[0], 2) // which is in the log as well
	for i := 6; i >= 0; i-- {
		want = append(want, fmt.Sprintf("019ab0de-79ea-74f8-9d3e-6d0c3f0a1b%02x", i))
	}
	for _, size := range []int{1, 2, 3, 4, 9, 10, 11} {
		var got []string
		for before, pages := "", 0; pages < 20; pages++ {
			_, body := k.do(ask{path: fmt.Sprintf("/runs?limit=%d&before=%s", size, before)})
			v := object1(t, body)
			list, _ := v["runs"].([]any)
			for _, r := range list {
				id, _ := r.(map[string]any)["run_id"].(string)
				got = append(got, id)
			}
			if before, _ = v["next"].(string); before == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d a page: %q, want %q", size, got, want)
		}
	}
	_, body := k.do(ask{path: "/runs?agent=notes_digest&limit=2", head: []string{"X-Who: launcher"}})
	if strings.Contains(body, "run_id") {
		t.Errorf("who may launch sees what others did: %s", body)
	}
	if _, body := k.do(ask{path: "/runs", head: []string{"X-Who: other"}}); strings.Contains(body, "run_id") {
		t.Errorf("another tenant sees %s", body)
	}
}

// A search that finds nothing among very many records is answered in its time: how
// far it looked, and where the next goes on.
func TestASearchSaysHowFarItLooked(t *testing.T) {
	h := &host{log: &log{}}
	h.log.add(oldRun, 10)
	now := time.Now()
	k := serve(t, h, Options{Now: func() time.Time {
		now = now.Add(searchTime / 4)
		return now
	}}, service.Options{})
	var looked []float64
	for cursor, pages := "0", 0; cursor != "" && pages < 20; pages++ {
		_, body := k.do(ask{path: "/audit?family=net&cursor=" + cursor})
		v := object1(t, body)
		if list, _ := v["records"].([]any); len(list) != 0 {
			t.Errorf("found %v", list)
		}
		cursor, _ = v["next"].(string)
		if at, is := v["looked"].(float64); is {
			looked = append(looked, at)
		}
	}
	if !slices.Equal(looked, []float64{4, 8, 12}) {
		t.Errorf("looked up to %v", looked)
	}
}

// Pages of records go on where the one before ended, by every filter.
func TestPagesOfRecords(t *testing.T) {
	h := &host{log: &log{}}
	h.log.add(oldRun, 10)
	k := serve(t, h, Options{}, service.Options{})
	for filter, want := range map[string]int{
		"": 12, "run=" + oldRun: 12, "decision=deny": 5, "family=fs": 10,
		"family=fs.read": 10, "family=net": 0, "family=kb_read": 0, "agent=x": 0, "since=2026-01-01T00:00:00Z": 12,
	} {
		n := 0
		for cursor, pages := "0", 0; cursor != "" && pages < 20; pages++ {
			_, body := k.do(ask{path: "/audit?limit=3&cursor=" + cursor + "&" + filter})
			v := object1(t, body)
			list, _ := v["records"].([]any)
			n += len(list)
			cursor, _ = v["next"].(string)
		}
		if n != want {
			t.Errorf("%s: %d, want %d", filter, n, want)
		}
	}
	if _, body := k.do(ask{path: "/audit?limit=4", head: []string{"Accept: application/x-ndjson"}}); strings.Count(body, "\n") != 4 {
		t.Error(body)
	}
	if resp, body := k.do(ask{path: "/audit?run=x&decision=no&since=soon&limit=0&cursor=-1&family=kbread"}); resp.StatusCode != http.StatusBadRequest || len(object1(t, body)["fields"].([]any)) != 6 {
		t.Error(body)
	}
}

// Large answers are compressed for who asks for that.
func TestGzip(t *testing.T) {
	k := serve(t, &host{}, Options{}, service.Options{})
	plain, text := k.do(ask{path: "/openapi.json", head: []string{"Accept-Encoding: gzip;q=0"}})
	resp, zipped := k.do(ask{path: "/openapi.json", head: []string{"Accept-Encoding: br, gzip"}})
	z, err := gzip.NewReader(strings.NewReader(zipped))
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" || plain.Header.Get("Content-Encoding") != "" {
		t.Fatal(err, resp.Header, plain.Header)
	}
	if again, err := io.ReadAll(z); err != nil || string(again) != text || len(zipped) >= len(text) {
		t.Error(err, len(zipped), len(text))
	}
}
