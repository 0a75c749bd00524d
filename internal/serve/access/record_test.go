package access

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"runloop.dev/rlp/internal/serve/service"
)

func aRecord() *Token {
	k := newToken()
	return &Token{
		ID: k.id, Name: "ci", Tenant: "acme", May: service.Launch | service.Read, Profiles: []string{"local_minimal"},
		Grant: "{\"limits\": {\"max_steps\": 5}}\n", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Expires: time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC), secret: digestOf(k.text), stated: true,
	}
}

// What is written is what is read, whatever a grant says.
func TestRecordsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := aRecord()
		want.Grant = rapid.StringMatching(`[ -~é\n\t"\\]{1,40}`).Draw(t, "grant")
		want.May = service.Rights(rapid.IntRange(1, 7).Draw(t, "may"))
		if rapid.Bool().Draw(t, "cert") {
			want.stated, want.secret, want.CertName = false, digest{}, rapid.StringMatching(`[ -~é"\\]{1,40}`).Draw(t, "name")
		}
		if rapid.Bool().Draw(t, "revoked") {
			want.Revoked = want.Created.Add(time.Hour)
		}
		got, err := decode(want.ID, "f", want.encode())
		if err != nil {
			t.Fatalf("%v in\n%s", err, want.encode())
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\n%+v", got, want)
		}
	})
}

// A record that somebody edited is what it says or nothing: no key that is not
// known, no right that is not, nothing left out that would be a restriction.
func TestEditedRecordsAreRefused(t *testing.T) {
	r := aRecord()
	text := string(r.encode())
	if _, err := decode(r.ID, "f", []byte(text)); err != nil {
		t.Fatalf("control: %v", err)
	}
	for name, edit := range map[string][2]string{
		"another version":        {"version = 1", "version = 2"},
		"no tenant":              {`tenant = "acme"`, ""},
		"a tenant that is none":  {`tenant = "acme"`, `tenant = "../x"`},
		"an empty tenant":        {`tenant = "acme"`, `tenant = ""`},
		"an unknown right":       {`may = ["run", "read"]`, `may = ["run", "root"]`},
		"no right":               {`may = ["run", "read"]`, `may = []`},
		"rights of another type": {`may = ["run", "read"]`, `may = "run"`},
		"an unknown key":         {`version = 1`, "version = 1\nexpire = 2030-01-01T00:00:00Z"},
		"the case of a key":      {`expires =`, `Expires =`},
		"a key twice":            {`version = 1`, "version = 1\nmay = [\"operate\"]"},
		"a date without a zone":  {`expires = 2027-01-02T03:04:05Z`, `expires = 2027-01-02T03:04:05`},
		"a text for a time":      {`expires = 2027-01-02T03:04:05Z`, `expires = "never"`},
		"no secret":              {`secret = "` + r.secret.String() + `"`, ""},
		"an empty secret":        {r.secret.String(), ""},
		"a short secret":         {r.secret.String(), r.secret.String()[:62]},
		"two proofs":             {`version = 1`, "version = 1\ncert_name = \"x\""},
		"another id":             {`id = "` + r.ID + `"`, `id = "abcdefghij"`},
		"an empty grant":         {quote(r.Grant), `""`},
		"a name with a line":     {`name = "ci"`, `name = "ci\nx"`},
		"a profile of no name":   {`["local_minimal"]`, `[""]`},
		"no TOML":                {`version = 1`, `version`},
	} {
		edited := strings.Replace(text, edit[0], edit[1], 1)
		if edited == text {
			t.Errorf("%s: nothing was edited", name)
		}
		if got, err := decode(r.ID, "f", []byte(edited)); err == nil {
			t.Errorf("%s: %+v", name, got)
		} else if strings.Contains(err.Error(), r.secret.String()) {
			t.Errorf("%s: the error has the digest: %v", name, err)
		}
	}
}

func TestRights(t *testing.T) {
	may, err := ParseRights(Rights())
	if err != nil || may != service.Launch|service.Read|service.Operate {
		t.Errorf("%v, %v", may, err)
	}
	for m := service.Rights(1); m <= 7; m++ {
		if got, err := ParseRights(RightsOf(m)); err != nil || got != m {
			t.Errorf("%d: %d, %v", m, got, err)
		}
	}
}

// A name is free again when its token is not good any more; who comes by the new
// one is another caller.
func TestANameIsNoIdentity(t *testing.T) {
	k := kitOf(t, nil)
	ids := map[string]bool{}
	for range 2 {
		made, text := k.token(t, nil)
		for range 2 { // the same token is the same caller
			c, err := k.Authenticate(bearer(t, text))
			if err != nil || c.Name != "token:ci" || c.ID != "token:"+made.ID {
				t.Fatalf("%+v, %v", c, err)
			}
			ids[c.ID] = true
		}
		if _, err := k.store.Revoke(made.ID); err != nil {
			t.Fatal(err)
		}
	}
	if len(ids) != 2 {
		t.Errorf("callers %v", ids)
	}
}
