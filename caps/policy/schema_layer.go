package policy

import (
	"runloop.dev/rlp/caps"
)

func layerSchemas() object {
	s := object{
		"tools": closed(object{"allow": object{
			"type": "array", "items": text(toolPattern),
			"description": "The tools that may be called by name; leave it out for no restriction.",
		}}),
		"visible": closed(object{"categories": object{
			"type": "array", "items": object{"type": "string", "examples": caps.Categories()},
			"description": "The categories of tools to keep; leave it out for all. What is hidden is refused by name too.",
		}}),
		"constraints": constraintsSchema(),
		"leases":      leasesSchema(),
	}
	for k, v := range metaSchemas() {
		s[k] = v
	}
	return s
}

const toolPattern = `^(\*|[A-Za-z0-9_./:*-]+)$`

func metaSchemas() object {
	return object{
		"schema_version": object{"const": "1.0"},
		"name":           object{"type": "string", "description": "What the file is called, without its ending."},
		"description":    object{"type": "string"},
		"intended_use":   object{"type": "string"},
		"orchestrator_expectations": object{
			"type": "array", "items": object{"type": "string"},
			"description": "What whoever starts agents under it is expected to do.",
		},
	}
}

func constraintsSchema() object {
	tables := object{}
	for _, table := range constraintTables() {
		tables[table] = constraintSchema(table)
	}
	s := closed(tables)
	s["description"] = "What bounds the use of a family; of two layers the stricter one holds."
	return s
}

func constraintSchema(table string) object {
	props := object{}
	for _, f := range listFields() {
		if f.table != table {
			continue
		}
		items := object{"type": "string"}
		for _, k := range keys() {
			if f.field == "methods" {
				items = object{"enum": methodNames()}
			} else if k.name == f.keys[0] {
				items = k.item(true)
			}
		}
		props[f.field] = object{"type": "array", "items": items}
	}
	for c := range caps.NumConstraints {
		t, key := c.Key()
		switch {
		case t != table:
		case c == caps.NetMinTLS:
			props[key] = object{"enum": []string{"1.2", "1.3"}}
		case c.Polarity().IsSwitch():
			props[key] = object{"type": "boolean"}
		default:
			props[key] = object{"type": "integer", "minimum": 0}
		}
	}
	return closed(props)
}

func leasesSchema() object {
	lease := closed(object{
		"expires":  object{"type": "string", "description": "A date and time with its zone, written without quotes."},
		"max_uses": object{"type": "integer", "minimum": 0, "description": "0 is none at all."},
	})
	lease["minProperties"] = 1
	return object{
		"type": "object", "propertyNames": object{"pattern": `^[a-z_]+:[a-z*]+:.+$`, "not": object{"pattern": "^tool:"}},
		"additionalProperties": lease,
		"description":          "Until when, and how often, what is granted may be used (schema 0.2).",
	}
}
