package config

import (
	"slices"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/tomlfile"
)

func settings() []setting {
	return slices.Concat([]setting{
		placed(text("security.profile", func(c *Config) *string { return &c.Security.Profile }, profileName),
			func(c *Config) *string { return &c.Security.ProfileAt }),
		flag("security.allow_unsigned", func(c *Config) *bool { return &c.Security.AllowUnsigned }),
		flag("security.confirm_external_actions", func(c *Config) *bool { return &c.Security.ConfirmExternalActions }),
		text("security.path_profile", func(c *Config) *string { return &c.Security.PathProfile }, oneOf("strict", "relaxed")),
		placed(text("security.run_grant", func(c *Config) *string { return &c.Security.RunGrant }, profileName),
			func(c *Config) *string { return &c.Security.RunGrantAt }),
		text("security.confirm", func(c *Config) *string { return &c.Security.Confirm }, oneOf("ask", "refuse", "allow")),
		flag("security.caps.audit_on_deny", func(c *Config) *bool { return &c.Security.Caps.AuditOnDeny }),
		flag("security.caps.audit_on_allow", func(c *Config) *bool { return &c.Security.Caps.AuditOnAllow }),
		flag("security.caps.fail_on_empty", func(c *Config) *bool { return &c.Security.Caps.FailOnEmpty }),
		list("security.caps.untrusted", func(c *Config) *[]string { return &c.Security.Caps.Untrusted }, untrustedSource),
		list("security.caps.trusted_hosts", func(c *Config) *[]string { return &c.Security.Caps.TrustedHosts }, trustedHost),
		text("security.secrets.provider", func(c *Config) *string { return &c.Security.SecretsProvider },
			oneOf("age", "env", "keyring", "exec")),
		list("security.secrets.command", func(c *Config) *[]string { return &c.Security.SecretsCommand }, notEmpty),
		list("security.secrets.env", func(c *Config) *[]string { return &c.Security.SecretsEnv }, variableName),
		text("delegation.capability_default", func(c *Config) *string { return &c.Delegation.CapabilityDefault },
			oneOf("inherit", "deny")),
		{name: "delegation.bindings", set: setBindings},
		list("kb.domains", func(c *Config) *[]string { return &c.KB.Domains }, domainName),
		text("kb.on_damage", func(c *Config) *string { return &c.KB.OnDamage }, oneOf("warn", "refuse")),
		text("kb.durability", func(c *Config) *string { return &c.KB.Durability }, oneOf("run", "effect", "record")),
		flag("kb.encryption", func(c *Config) *bool { return &c.KB.Encryption }),
		{name: "limits", set: setLimits},
		text("model.default", func(c *Config) *string { return &c.Model.Default }, modelName),
		flag("model.cache", func(c *Config) *bool { return &c.Model.Cache }),
		{name: "model.providers", set: setProviders, show: func(*Config) any { return []string{} }},
		{name: "model.prices", set: setPrices},
		text("daemon.start", func(c *Config) *string { return &c.Daemon.Start }, oneOf("never", "auto")),
		text("daemon.idle", func(c *Config) *string { return &c.Daemon.Idle }, idleTime),
		{name: "mcp.servers", set: setServers},
		list("approvals.approvers", func(c *Config) *[]string { return &c.Approvals.Approvers }, notEmpty),
	}, execSettings(), auditSettings(), serveSettings(), logSettings())
}

func placed(s setting, at func(*Config) *string) setting {
	set := s.set
	s.set = func(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
		if set(w, name, v, c); v.Str != "" {
			*at(c) = v.Pos.String() + ": "
		}
	}
	return s
}

func setLimits(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
	if !w.Is(v, "["+name+"]", tomlfile.TableKind) {
		return
	}
	limits, findings := policy.ParseLimits(v.Table)
	for _, f := range findings {
		if f.Severity == policy.SeverityError {
			w.Errorf(tomlfile.Pos{File: f.Path, Line: f.Line, Column: f.Column}, f.Hint, "%s", f.Message)
		}
	}
	c.Limits = limits
}
