package policy

import (
	"encoding/json"
	"slices"

	"runloop.dev/rlp/caps"
)

// object is a JSON object with sorted keys, as encoding/json writes maps.
type object = map[string]any

// Schema returns the JSON Schema (2020-12) of a kind of document, for editors.
// It derives from the tables that the parser goes by. What a schema cannot say
// (a path that must be clean, a domain that a config adds) the parser checks.
func Schema(kind Kind) []byte {
	s := documentSchema(kind)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = "https://runloop.dev/schema/" + string(kind) + ".json"
	s["title"] = map[Kind]string{
		KindPolicy: "policy.caps", KindManifest: "manifest.toml", KindOverride: "override", KindProfile: "profile",
		KindGrant: "grant", KindTemplate: "template",
	}[kind]
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // maps of strings always marshal
	}
	return append(data, '\n')
}

func documentSchema(kind Kind) object {
	schemaKey := object{
		"enum": []string{schema01, schema02}, "default": schema01,
		"description": "What version of the format the document is written in.",
	}
	layer := kind == KindOverride || kind == KindProfile
	all := layerSchemas()
	for k, v := range (object{
		"schema": schemaKey,
		"templates": object{
			"type": "array", "items": object{"type": "string", "pattern": namePattern},
			"description": "Named capability sets that join this one (schema 0.2).",
		},
		"capabilities": capabilitiesSchema(layer),
		"deny":         denySchema(),
		"inject":       injectSchema(),
		"limits":       limitsSchema(),
		"params": object{
			"type": "object", "propertyNames": object{"pattern": "^" + paramPattern + "$"},
			"additionalProperties": object{"type": "string", "pattern": "^(/|~)"},
			"description":          "Values for the placeholders of the agent's policy.",
		},
	}) {
		all[k] = v
	}
	switch kind {
	case KindManifest:
		return manifestSchema()
	case KindGrant:
		return grantSchema()
	}
	props := object{}
	for _, k := range rootKeys(kind) {
		props[k] = all[k]
	}
	s := closed(props)
	s["if"] = object{"not": object{
		"properties": object{"schema": object{"const": schema02}},
		"required":   []string{"schema"},
	}}
	without := object{
		"capabilities": object{"properties": capabilities01(layer)}, "templates": object{"maxItems": 0},
		"leases":      object{"not": object{}},
		"constraints": object{"properties": object{"net": constraints01()}},
	}
	if kind == KindPolicy {
		without[injectKey] = object{"not": object{}}
	}
	s["then"] = object{"properties": without}
	return s
}

const versionPattern = `^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$`

// namePattern is what agents, templates and bundles are called.
const namePattern = `^[a-z][a-z0-9_-]{0,63}$`

// requiresSchema is that of [capabilities], with the routes beside it.
func requiresSchema() object {
	s := capabilitiesSchema(false)
	s["properties"].(object)[injectKey] = injectSchema()
	return s
}

// injectSchema is what a JSON Schema says of the routes of a document.
func injectSchema() object {
	return object{
		"type": "array",
		"items": object{
			"type": "object", "required": injectKeys(), "additionalProperties": false,
			"properties": object{
				"host":    text(`^[^\s/@\\*:\[\]]+\.[^\s/@\\*:\[\]]+$`),
				"methods": object{"type": "array", "minItems": 1, "items": object{"enum": methodNames()}},
				"path":    text(`^/([^*?#%\\]|%[0-9A-F]{2})*(/?\*)?$`),
				"header":  text(`^[A-Za-z0-9-]+(:.*\{secret\}.*)?$`),
				"secret":  text(secretPattern),
			},
		},
		"description": "Routes on which a program's requests are given a secret that it does not see (schema 0.2).",
	}
}

func closed(props object) object {
	return object{"type": "object", "properties": props, "additionalProperties": false}
}

func text(pattern string) object { return object{"type": "string", "pattern": pattern} }

func capabilitiesSchema(layer bool) object {
	props := object{}
	for _, k := range keys() {
		s := k.schema(layer)
		s["description"] = k.about
		props[k.name] = s
	}
	return closed(props)
}

func constraints01() object {
	return object{
		"not":        object{"type": "object", "required": []string{"methods"}},
		"properties": object{"hosts": object{"not": object{"type": "array", "contains": object{"pattern": `^\*`}}}},
	}
}

// capabilities01 is what schema 0.1 takes away from the forms of 0.2.
func capabilities01(layer bool) object {
	props := object{}
	for _, k := range keys() {
		switch {
		case k.forms&formList02 != 0:
			props[k.name] = object{"not": object{"type": "array", "minItems": 1}}
		case k.family == caps.FS && !layer:
			props[k.name] = object{"not": object{"type": "array", "contains": object{"pattern": `^\{`}}}
		case k.family == caps.Net:
			wild := object{"type": "array", "contains": object{"pattern": `^\*`}}
			props[k.name] = object{"not": object{"anyOf": []any{
				wild,
				object{"type": "object", "required": []string{"methods"}},
				object{"type": "object", "required": []string{"tcp"}},
				object{"type": "object", "required": []string{"hosts"}, "properties": object{"hosts": wild}},
			}}}
		case k.forms&formSecret != 0:
			props[k.name] = object{"not": object{"type": "array", "contains": object{"type": "object"}}}
		}
	}
	return props
}

func (k key) schema(layer bool) object {
	var forms []any
	if k.forms&formBool != 0 {
		forms = append(forms, object{"type": "boolean"})
	} else {
		forms = append(forms, object{"const": false})
	}
	if k.forms&formList != 0 {
		forms = append(forms, object{"type": "array", "items": k.item(layer)})
	}
	if k.forms&formTable != 0 {
		forms = append(forms, closed(object{
			"hosts":      object{"type": "array", "items": k.item(layer)},
			"allow_http": object{"type": "boolean", "description": "Plain http as well."},
			"methods": object{
				"type": "array", "items": object{"enum": methodNames()},
				"description": "These methods alone (schema 0.2).",
			},
			"tcp": object{
				"type": "array", "items": text(placePattern),
				"description": "Bytes over TCP to these hosts and ports, for programs (schema 0.2).",
			},
		}))
	}
	if len(forms) == 1 {
		return forms[0].(object)
	}
	return object{"anyOf": forms}
}

const (
	placePattern  = `^[^\s/@\\*:\[\]]+:[1-9][0-9]{0,4}$|^\[[0-9a-fA-F:.]+\]:[1-9][0-9]{0,4}$`
	hostPattern   = `^(\*\.)?[^\s/@\\*:\[\]]+(:[1-9][0-9]{0,4})?$|^\[[0-9a-fA-F:.]+\](:[1-9][0-9]{0,4})?$`
	secretPattern = `^runloop/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$`
)

func (k key) item(layer bool) object {
	switch k.family {
	case caps.FS:
		if layer {
			return text(`^(/|~/|~$)[^*?\[]*$`)
		}
		return text(`^(/|~/|~$|\{` + paramPattern + `\}(/|$))[^*?\[]*$`)
	case caps.Net:
		return text(hostPattern)
	case caps.KBRead:
		return domainSchema(`^[a-z][a-z0-9_-]*$`)
	case caps.KBWrite:
		return object{"allOf": []any{domainSchema(`^[a-z][a-z0-9_-]*$`), object{"not": object{"pattern": "_raw$"}}}}
	case caps.Secrets:
		return object{"anyOf": []any{
			text(secretPattern),
			object{
				"type": "object", "required": []string{"id", "hosts"}, "additionalProperties": false,
				"properties": object{"id": text(secretPattern), "hosts": object{"type": "array", "items": text(hostPattern)}},
			},
		}}
	case caps.Exec:
		return text(`^/[^*?\[]+$`)
	case caps.Agents:
		return text(namePattern)
	case caps.Model:
		return text(`^(\*|[A-Za-z0-9._/:@+-]+(:\*)?)$`)
	case caps.MCP:
		return text(`^[A-Za-z0-9_.-]{1,64}$`)
	default:
		return text(`^[^\s*=]+$`)
	}
}

// domainSchema offers the built-in domains and leaves room for those that a
// config adds.
func domainSchema(pattern string) object {
	s := text(pattern)
	s["examples"] = append(BuiltinDomains(), "contacts"+rawSuffix)
	return s
}

func denySchema() object {
	return closed(object{
		"capabilities": object{
			"type": "array", "items": text(`^(net:.+|[a-z*_]+:[a-z*]+:.+)$`),
			"description": "Capability strings, domain:action:scope, that are taken away.",
		},
		"tools": object{
			"type": "array", "items": text(toolPattern),
			"description": "Tools that may not be called, by any of their names.",
		},
		"tiers": object{
			"type": "array", "items": object{"enum": caps.TierNames()},
			"description": "Privilege tiers of which nothing is left.",
		},
		"effects": object{
			"type": "array", "items": object{"enum": caps.EffectNames()},
			"description": "Effects that nothing left may have.",
		},
	})
}

func limitsSchema() object {
	props := object{}
	for _, k := range limitKeys() {
		l, _, _ := caps.LimitOf(k)
		s := object{"type": "integer", "minimum": 0, "description": "0 is none at all; leave the key out for no restriction."}
		switch {
		case l == caps.ModelUSD:
			s["type"] = "number"
		case slices.Contains(limitAliases(), k):
			s["description"] = "Another name of " + l.String() + "."
		}
		props[k] = s
	}
	return closed(props)
}

// manifestSchema holds what a bundle's manifest says beside its policy as well,
// so that one schema serves the whole file.
func manifestSchema() object {
	digest := text(`^[0-9a-fA-F]{64}$`)
	path := object{"type": "string", "pattern": `^[^/\\:]([^\\:]*[^/\\:])?$`}
	file := object{
		"type": "object", "required": []string{"path"}, "additionalProperties": false,
		"properties": object{"path": path, "sha256": digest, "blake3": digest},
	}
	artifact := object{
		"type": "object", "required": []string{"path"}, "additionalProperties": false,
		"properties": object{"path": path, "sha256": digest, "blake3": digest, "version": object{"type": "integer"}},
	}
	words := object{"type": "array", "items": object{"type": "string"}}
	program := object{
		"type": "object", "required": []string{"path"}, "additionalProperties": false,
		"properties": object{
			"path": text(`^/?[^/\\:]([^\\:]*[^/\\:])?$`), "args": words, "sha256": digest,
		},
		"description": "A program in the bundle, or of the machine by its absolute path, and its first arguments.",
	}
	return object{
		"type": "object", "required": []string{"agent"}, "additionalProperties": false,
		"properties": object{
			"agent": object{
				"type": "object", "required": []string{"name", "kind"}, "additionalProperties": false,
				"properties": object{
					"name": text(namePattern), "version": text(versionPattern),
					"kind":        object{"enum": []string{"wasm32-wasip1", "program"}},
					"description": object{"type": "string"}, "variant": text(versionPattern), "entry_wasm": file,
					"entry_program": program, "entry_native": object{"type": "object"},
				},
			},
			"entry_wasm": file, "entry_program": program, "entry_native": object{"type": "object"},
			"caps":      closed(object{"file": path, "sha256": digest, "blake3": digest}),
			"requires":  requiresSchema(),
			"limits":    limitsSchema(),
			"artifacts": object{"type": "object", "additionalProperties": artifact},
			"schemas":   object{"type": "object", "additionalProperties": object{"type": "object"}},
			"ports":     closed(object{"in": words, "out": words}),
			"input": object{
				"type": "object", "required": []string{"type"}, "additionalProperties": false,
				"properties":  object{"type": object{"enum": []string{"json", "text", "bytes"}}},
				"description": "What the agent reads: one JSON document, which is the default, a text in UTF-8, or any bytes.",
			},
			"params": object{
				"type": "object", "propertyNames": object{"pattern": "^" + paramPattern + "$"},
				"additionalProperties": object{
					"type": "object", "required": []string{"kind"}, "additionalProperties": false,
					"properties": object{"kind": object{"enum": []string{"dir", "file"}}, "description": object{"type": "string"}},
				},
				"description": "The placeholders of the policy, which the operator gives at launch.",
			},
		},
	}
}
