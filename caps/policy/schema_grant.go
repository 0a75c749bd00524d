package policy

import (
	"runloop.dev/rlp/caps"
)

// grantSchema is the schema of a grant. Every field may be null, which is no
// restriction.
func grantSchema() object {
	list := func(items object, about string) object {
		return object{"anyOf": []any{object{"type": "null"}, object{"type": "array", "items": items}}, "description": about}
	}
	name := text(`^[A-Za-z0-9_./:*-]+$`)
	allowed := list(name, "The adapters that are left; null is no restriction, [] is nothing.")
	allowed["anyOf"] = append(allowed["anyOf"].([]any), object{"const": "operator_defined"})
	limits := limitsSchema()
	limits["type"] = []string{"object", "null"}
	constraints := object{}
	for _, n := range constrainable() {
		a, _ := adapterOf(n)
		constraints[n] = adapterSchema(a.table)
	}
	props := object{
		"allowed_adapters":          allowed,
		"forbidden_adapters":        list(name, "The adapters that are taken away, whatever is allowed."),
		"forbidden_effects":         list(object{"enum": caps.EffectNames()}, "Effects that nothing left may have."),
		"forbidden_effect_tiers":    list(object{"enum": caps.EffectNames()}, "The same."),
		"forbidden_privilege_tiers": list(object{"enum": caps.TierNames()}, "Privilege tiers of which nothing is left."),
		"limits":                    limits,
		"adapter_constraints": object{
			"type": []string{"object", "null"}, "properties": constraints, "additionalProperties": false,
			"description": "What bounds the use of an adapter.",
		},
	}
	return closed(props)
}

// adapterSchema is what [constraints] has for a table, lists under the names
// that begin with "allow_" as well.
func adapterSchema(table string) object {
	s := constraintSchema(table)
	props := s["properties"].(object)
	for _, f := range listFields() {
		if f.table == table {
			props["allow_"+f.field] = props[f.field]
		}
	}
	s["type"] = []string{"object", "null"}
	return s
}
