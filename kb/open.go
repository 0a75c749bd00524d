package kb

import (
	"errors"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/values"
)

// openEngine opens a store and brings it to the layout of this program.
func openEngine(o Options, l layout) (*engine, error) {
	e, err := newEngine(o, l)
	if err != nil {
		return nil, err
	}
	return e.started()
}

// started brings a store that was opened as it is to the layout of this program.
func (e *engine) started() (*engine, error) {
	if err := e.begin(); err != nil {
		return nil, errors.Join(err, e.db.Close())
	}
	e.values.Start()
	return e, nil
}

// begin sees to it that the database is as this program wants it.
func (e *engine) begin() error {
	_, under, err := e.restoring()
	if err != nil {
		return err
	}
	e.shut.Store(under)
	if under {
		return nil
	}
	return e.migrate()
}

// newEngine opens a store as it is.
func newEngine(o Options, l layout) (*engine, error) {
	codec, err := audit.NewCodec()
	if err != nil {
		return nil, err
	}
	if err := db.MakeDir(l.kb, false); err != nil {
		return nil, err
	}
	if err := db.RoomLeft(l.kb); err != nil {
		return nil, err
	}
	f := &db.Listener{Failed: make(chan error, 1), Free: func() error { return db.DescriptorsLeft(db.MinDescriptors) }}
	db, err := db.OpenDatabase(l.kb, f)
	if err != nil {
		return nil, err
	}
	e := &engine{db: db, codec: codec, flushes: f, agreement: agreementOf(o.values())}
	e.values = values.New(db, codec, *o.values(), e.mayServe)
	if e.log, err = log.New(db, codec, o.log(l.journal)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return e, nil
}
