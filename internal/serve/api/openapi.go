package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/serve/service"
)

// schemas are those of bodies, which a test holds against what is answered.
//
//go:embed schemas.json
var schemas string

// mostInputs bounds the schemas of inputs in one description, in bytes.
const mostInputs = 1 << 20

// document describes the routes, as OpenAPI 3.1, with the schemas of the inputs of
// agents: POST /run holds its input against them.
func document(table []route, agents []service.Agent) []byte {
	paths := map[string]map[string]any{}
	for i := range table {
		rt := &table[i]
		if paths[rt.path] == nil {
			paths[rt.path] = map[string]any{}
		}
		paths[rt.path][strings.ToLower(rt.method)] = operation(rt)
	}
	var named map[string]json.RawMessage
	_ = strictjson.Unmarshal([]byte(schemas), &named) // a test reads it
	if each := inputs(agents, named); len(each) > 0 {
		run := operation(&table[slices.IndexFunc(table, func(rt route) bool { return rt.path == "/run" })])
		body := content("", "RunRequest")
		schemaOf(body)["allOf"] = each
		run["requestBody"] = map[string]any{"required": true, "content": body}
		paths["/run"] = map[string]any{"post": run}
	}
	doc := map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "rlp serve", "version": "1",
			"summary": "Launches agents with exactly the capabilities that are left to them.",
			"license": map[string]any{"name": "see the project"},
		},
		"servers":  []any{map[string]any{"url": "/"}},
		"security": []any{map[string]any{"token": []any{}}, map[string]any{}},
		"paths":    paths,
		"components": map[string]any{
			"schemas": named,
			"securitySchemes": map[string]any{
				"token": map[string]any{
					"type": "http", "scheme": "bearer",
					"description": "made by rlp token new; the operator needs none on the host itself",
				},
			},
		},
	}
	p, _ := json.Marshal(doc) // a test reads it
	return append(p, '\n')
}

// inputs adds the schemas of the inputs of agents to those that have a name, and
// returns the conditions under which a request is held against them.
func inputs(agents []service.Agent, named map[string]json.RawMessage) []any {
	var each []any
	size := 0
	for i := range agents {
		schema := ofItsOwn(&agents[i])
		if size += len(schema); schema == nil || size > mostInputs {
			continue
		}
		name := "Input." + agents[i].Name
		named[name] = schema
		each = append(each, map[string]any{
			"if": map[string]any{
				"properties": map[string]any{"agent": map[string]any{"const": agents[i].Name}}, "required": []any{"agent"},
			},
			"then": map[string]any{"properties": map[string]any{"input": map[string]any{
				"$ref": "#/components/schemas/" + name,
			}}},
		})
	}
	return each
}

// ofItsOwn is the schema of an agent's input as a document of its own, within which its
// references lead; nil: there is none.
func ofItsOwn(a *service.Agent) json.RawMessage {
	var schema map[string]json.RawMessage
	if strictjson.Unmarshal(a.InputSchema, &schema) != nil || schema == nil {
		return nil
	}
	if bytes.Contains(a.InputSchema, []byte(`"$ref"`)) {
		schema["$id"] = json.RawMessage(`"urn:rlp:input:` + a.Name + `"`)
	}
	p, _ := json.Marshal(schema) // all of it was JSON
	return p
}

// schemaOf is the schema of a body in JSON.
func schemaOf(content map[string]any) map[string]any {
	body, _ := content["application/json"].(map[string]any)
	schema, _ := body["schema"].(map[string]any)
	return schema
}

func operation(rt *route) map[string]any {
	op := map[string]any{"summary": rt.summary, "operationId": operationID(rt), "responses": responses(rt)}
	var params []any
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(rt.path, -1) {
		params = append(params, map[string]any{
			"name": m[1], "in": "path", "required": true,
			"schema": map[string]any{"type": "string"},
		})
	}
	for _, where := range []string{"query", "header"} {
		for _, p := range map[string][]parameter{"query": rt.query, "header": rt.header}[where] {
			if p.name == "Accept" { // of which the answers tell
				continue
			}
			params = append(params, map[string]any{
				"name": p.name, "in": where, "description": p.about,
				"schema": map[string]any{"type": "string"},
			})
		}
	}
	if params != nil {
		op["parameters"] = params
	}
	if rt.open {
		op["security"] = []any{}
	}
	if rt.body != "" {
		op["requestBody"] = map[string]any{"required": true, "content": content("", rt.body)}
	}
	return op
}

// operationID is a name made of the method and the path: getRunsIdEvents.
func operationID(rt *route) string {
	id := strings.ToLower(rt.method)
	for _, part := range strings.FieldsFunc(rt.path, func(r rune) bool { return strings.ContainsRune("/{}.", r) }) {
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return id
}

// responses are what a route answers, and what every one does.
func responses(rt *route) map[string]any {
	all := slices.Clone(rt.answers)
	if !rt.open {
		all = append(all, problems(401, 429, 500, 503)...)
	}
	all = append(all, problems(403, 421)...) // of pages elsewhere, and by other names
	out := map[string]any{}
	for _, a := range all {
		code := strconv.Itoa(a.status)
		old, there := out[code].(map[string]any)
		switch {
		case a.schema == "" && a.kind == "":
			out[code] = map[string]any{"description": a.about}
		case !there:
			out[code] = map[string]any{"description": a.about, "content": content(a.kind, a.schema)}
		case a.kind != "":
			had, _ := old["content"].(map[string]any)
			for kind, media := range content(a.kind, a.schema) {
				had[kind] = media
			}
		}
	}
	return out
}

// content is a body of a kind.
func content(kind, schema string) map[string]any {
	s := map[string]any{"type": "string"}
	if schema != "" {
		s = map[string]any{"$ref": "#/components/schemas/" + schema}
	}
	if kind == "" {
		kind = "application/json"
	}
	return map[string]any{kind: map[string]any{"schema": s}}
}
