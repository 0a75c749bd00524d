package secrets

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"runloop.dev/rlp/internal/base/ident"
)

// A variable is the secret of exactly one tenant: acme has nothing of
// acme_co's, whatever the ids are.
//
//rlp:holds K9 R83
func TestEnvIsExact(t *testing.T) {
	env := []string{
		"RLP_SECRET_acme_0mail_0key=value of acme",
		"RLP_SECRET_acme__co_0mail_0key=value of acme_co",
		"RLP_SECRET_acme_0mail_0smtp__api_1key_2x=value with signs",
		"RLP_SECRET_ACME_0mail_0key=value of ACME",
		"AKC_SECRET_acme_key=no secret", "mail_key=no secret", "MAIL_KEY=no secret", "runloop/mail/key=no secret",
		"RLP_SECRET_acme_0mail_0bad_9=no secret", "RLP_SECRET_acme_0mail_=no secret", "RLP_SECRET_=no secret",
	}
	acme := open(t, Config{Provider: "env", Tenant: tenantOf(t, "acme"), Env: env})
	co := open(t, Config{Provider: "env", Tenant: tenantOf(t, "acme_co"), Env: env})
	for _, c := range []struct {
		p        Provider
		id, want string
	}{
		{acme, "runloop/mail/key", "value of acme"},
		{acme, "runloop/mail/smtp_api-key.x", "value with signs"},
		{co, "runloop/mail/key", "value of acme_co"},
		{acme, "runloop/co/mail", ""},
		{acme, "runloop/_co/mail", ""},
		{acme, "runloop/acme/key", ""},
		{acme, "runloop/mail/KEY", ""},
		{co, "runloop/mail/smtp_api-key.x", ""},
	} {
		v, err := c.p.Get(t.Context(), idOf(t, c.id))
		if string(v) != c.want || (c.want == "") != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s = %q, %v; want %q", c.id, v, err, c.want)
		}
	}
	ids, err := acme.List(t.Context())
	if err != nil || !slices.Equal(ids, []ID{idOf(t, "runloop/mail/key"), idOf(t, "runloop/mail/smtp_api-key.x")}) {
		t.Errorf("List() = %v, %v", ids, err)
	}
	for _, err := range []error{acme.Put(t.Context(), ids[0], []byte("correct-horse")), acme.Delete(t.Context(), ids[0])} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("changed the environment: %v", err)
		}
	}
}

// FuzzEnvName: every tenant and id have one name, and every name that is read
// is the name of what was read from it.
func FuzzEnvName(f *testing.F) {
	f.Add("acme", "co_mail", "key", "RLP_SECRET_acme_0co__mail_0key")
	f.Add("acme_co", "mail", "key", "RLP_SECRET_acme__0co_0mail_0key")
	f.Add("_", "_", "-.", "RLP_SECRET____0___0_1_2")
	f.Fuzz(func(t *testing.T, tenant, scope, name, text string) {
		id, err := ParseID("runloop/" + scope + "/" + name)
		if _, tenantErr := ident.ParseTenant(tenant); err == nil && tenantErr == nil {
			gotTenant, gotID, ok := ParseEnvName(EnvName(tenant, id))
			if !ok || gotTenant != tenant || gotID != id {
				t.Fatalf("%q %s is %q, read as %q %s %v", tenant, id, EnvName(tenant, id), gotTenant, gotID, ok)
			}
		}
		if tenant, id, ok := ParseEnvName(text); ok && EnvName(tenant, id) != text {
			t.Fatalf("%q is read as %q %s, whose name is %q", text, tenant, id, EnvName(tenant, id))
		}
	})
}
