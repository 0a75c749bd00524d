package secrets_test

import (
	"context"
	"fmt"

	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/secrets"
)

// An agent is given a handle. The host puts the value in where the handle stands,
// and takes it out of whatever comes back.
func ExampleRun() {
	tenant, err := ident.ParseTenant("default")
	if err != nil {
		panic(err)
	}
	id, err := secrets.ParseID("runloop/api/token")
	if err != nil {
		panic(err)
	}
	variable := secrets.EnvName(tenant.String(), id) + "=kQ8zT4-example"
	run := secrets.NewRun(func() (secrets.Provider, error) {
		return secrets.Open(secrets.Config{Provider: "env", Tenant: tenant, Env: []string{variable}})
	})
	defer run.Close()
	handle, err := run.Handle(context.Background(), id.String())
	if err != nil {
		fmt.Println(err)
		return
	}
	sent, err := run.Fill("Bearer "+handle, func(id string) error { return nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sent)
	fmt.Printf("%s\n", run.Scrub([]byte("you sent kQ8zT4-example"), func(string) {}))
	// Output:
	// Bearer kQ8zT4-example
	// you sent [secret runloop/api/token]
}
