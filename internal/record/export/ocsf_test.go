package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"runloop.dev/rlp/internal/record/audit"
)

// A shape is a class or an object of the schema.
type shape struct {
	ClassUID   int `json:"class_uid"`
	Attributes map[string]struct {
		Type, Base, Requirement, Profile string
		Array, Deprecated                bool
		Enum                             []string
	} `json:"attributes"`
	Constraints struct {
		Any []string `json:"at_least_one"`
		One []string `json:"just_one"`
	} `json:"constraints"`
}

// schema is what testdata has of OCSF.
type schema struct {
	Version string           `json:"version"`
	Classes map[string]shape `json:"classes"`
	Objects map[string]shape `json:"objects"`
}

func readSchema(t testing.TB) *schema {
	t.Helper()
	p, err := os.ReadFile("testdata/ocsf-1.8.0.json")
	if err != nil {
		t.Fatal(err)
	}
	s := new(schema)
	if err := json.Unmarshal(p, s); err != nil || s.Version != ocsfVersion {
		t.Fatal(s.Version, err)
	}
	return s
}

// check is an error unless a line is an event of the schema.
func (s *schema) check(line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var e map[string]any
	if err := d.Decode(&e); err != nil {
		return err
	}
	for name, class := range s.Classes {
		if fmt.Sprint(e["class_uid"]) != strconv.Itoa(class.ClassUID) {
			continue
		}
		profiles, _ := e["metadata"].(map[string]any)["profiles"].([]any)
		if err := s.checkShape(name, class, e, profiles); err != nil {
			return err
		}
		if fmt.Sprint(e["type_uid"]) != fmt.Sprintf("%v%02v", e["class_uid"], e["activity_id"]) ||
			fmt.Sprint(e["category_uid"]) != "6" {
			return fmt.Errorf("type_uid %v of class %v, activity %v", e["type_uid"], e["class_uid"], e["activity_id"])
		}
		return nil
	}
	return fmt.Errorf("no class %v", e["class_uid"])
}

func (s *schema) checkShape(at string, sh shape, m map[string]any, profiles []any) error {
	has := func(name string) bool { return m[name] != nil }
	for name, value := range m {
		a, known := sh.Attributes[name]
		switch {
		case !known:
			return fmt.Errorf("%s has no %s", at, name)
		case a.Deprecated:
			return fmt.Errorf("%s.%s is deprecated", at, name)
		case a.Profile != "" && !slices.Contains(profiles, any(a.Profile)):
			return fmt.Errorf("%s.%s is of the profile %s, which is not named", at, name, a.Profile)
		case name == "class_uid" || name == "category_uid": // told apart above
		case len(a.Enum) > 0 && !slices.Contains(a.Enum, fmt.Sprint(value)):
			return fmt.Errorf("%s.%s is %v, none of %v", at, name, value, a.Enum)
		}
		values := []any{value}
		if list, is := value.([]any); is != a.Array {
			return fmt.Errorf("%s.%s is %v", at, name, value)
		} else if is {
			values = list
		}
		for _, v := range values {
			if err := s.checkValue(at+"."+name, a.Type, a.Base, v, profiles); err != nil {
				return err
			}
		}
	}
	for name, a := range sh.Attributes {
		if a.Requirement == "required" && !has(name) && (a.Profile == "" || slices.Contains(profiles, any(a.Profile))) {
			return fmt.Errorf("%s lacks %s", at, name)
		}
	}
	if any := sh.Constraints.Any; len(any) > 0 && !slices.ContainsFunc(any, has) {
		return fmt.Errorf("%s has none of %v", at, any)
	}
	return nil
}

func (s *schema) checkValue(at, kind, base string, v any, profiles []any) error {
	if base != "" {
		kind = base
	}
	ok := true
	switch kind {
	case "integer_t", "long_t":
		n, is := v.(json.Number)
		_, err := n.Int64()
		ok = is && err == nil
	case "string_t":
		_, ok = v.(string)
	case "boolean_t":
		_, ok = v.(bool)
	case "object":
		_, ok = v.(map[string]any)
	default:
		sh, known := s.Objects[kind]
		m, is := v.(map[string]any)
		if !known || !is {
			return fmt.Errorf("%s is %v, a %s", at, v, kind)
		}
		return s.checkShape(at, sh, m, profiles)
	}
	if !ok {
		return fmt.Errorf("%s is %v, no %s", at, v, kind)
	}
	return nil
}

// Every event is one of the schema: classes, required attributes, enums,
// profiles and constraints; and the record is in it as it is exported.
func TestEventsAreOCSF(t *testing.T) {
	s, log := readSchema(t), example()
	lines := strings.Split(string(encode(t, OCSF, Options{Version: "0.1.0"}, glances(t, log))), "\n")
	for i := range log {
		if err := s.check([]byte(lines[i])); err != nil {
			t.Errorf("record %d: %v\n%s", i+1, err, lines[i])
		}
		record, err := log[i].AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(lines[i], `"unmapped":`+string(record)+"}") {
			t.Errorf("record %d is not in its event:\n%s", i+1, lines[i])
		}
	}
}

// So is one of any record at all.
func TestAnyEventIsOCSF(t *testing.T) {
	s := readSchema(t)
	word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"net.http", "fs.write", "model.use",
		"https://[::1]:9/x", "openai:x", "http://a:99999999/", "path_create_directory",
	}))
	kinds := []string{
		audit.KindRunStart, audit.KindCallDone, audit.KindCapsSwap, audit.KindRunComplete,
		audit.KindRunFailed, audit.KindPolicyRejected,
	}
	enc, err := New(OCSF, Options{})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := audit.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		w := func(name string) string { return word.Draw(t, name) }
		sev := audit.Severity(rapid.IntRange(0, 2).Draw(t, "severity"))
		r := audit.Record{
			Seq: 1, RunSeq: 1, Time: time.UnixMilli(rapid.Int64Range(0, 1<<40).Draw(t, "ms")).UTC(),
			Head: audit.Head{
				RunID: w("run"), TraceID: w("trace"), Tenant: w("tenant"), Agent: w("agent"), ParentRun: w("parent"),
				BundleDigest: w("bundle"),
			},
		}
		if rapid.Bool().Draw(t, "decision") {
			r.Decision = &audit.DecisionRecord{
				Cap: w("cap"), Op: w("op"), Target: w("target"), Reason: w("reason"),
				Layer: w("layer"), Deny: rapid.Bool().Draw(t, "deny"), Severity: sev,
			}
		} else {
			r.Event = &audit.Event{
				Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Severity: sev, Verb: w("verb"),
				Status: w("status"), Source: w("source"), Outcome: w("outcome"), Message: w("message"),
			}
		}
		p, err := codec.Encode(&r)
		if err != nil {
			t.Fatal(err)
		}
		line, err := enc.Append(nil, &audit.Glance{Stored: p})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.check(line); err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
	})
}

// The control: the check finds what is wrong with an event.
func TestSchemaFindsWhatIsWrong(t *testing.T) {
	s := readSchema(t)
	good := strings.Split(string(encode(t, OCSF, Options{Version: "0.1.0"}, glances(t, example()))), "\n")[1]
	if err := s.check([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		`"class_uid":6003`:        `"class_uid":6999`,
		`"severity_id":1`:         `"severity_id":8`,
		`"activity_id":2`:         `"activity_id":3`,
		`"time":`:                 `"tyme":`,
		`"time":1`:                `"time":1.5`,
		`"security_control",`:     ``,
		`"operation":`:            `"version":`,
		`"api":{`:                 `"apy":{`,
		`"is_alert":false`:        `"is_alert":0`,
		`"resources":[{`:          `"policy":[{`,
		`,"uid":"` + runA + `"}}`: `}}`,
	} {
		bad := strings.Replace(good, from, to, 1)
		if bad == good {
			t.Errorf("%s is not in %s", from, good)
		}
		if err := s.check([]byte(bad)); err == nil {
			t.Errorf("%s instead of %s is not found", to, from)
		}
	}
}
