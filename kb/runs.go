package kb

// A RunQuery asks for runs, the newest first.
type RunQuery struct {
	Before string `cbor:"1,keyasint,omitempty"` // only runs that began before the run of this id; "": from the newest
	Agent  string `cbor:"2,keyasint,omitempty"`
	Limit  int    `cbor:"3,keyasint,omitempty"` // 0: all
}

// A RunSummary is a run as its first and its last record tell it.
type RunSummary struct {
	RunID        string `cbor:"1,keyasint"`
	TraceID      string `cbor:"2,keyasint,omitempty"`
	Agent        string `cbor:"3,keyasint"`
	ParentRun    string `cbor:"4,keyasint,omitempty"`
	BundleDigest string `cbor:"5,keyasint,omitempty"`
	BeganMS      int64  `cbor:"6,keyasint"`           // since 1970
	EndedMS      int64  `cbor:"7,keyasint,omitempty"` // 0: it has not ended
	End          string `cbor:"8,keyasint,omitempty"` // the kind of its last record, if that is an end
	Outcome      string `cbor:"9,keyasint,omitempty"`
	ExitCode     int    `cbor:"10,keyasint,omitempty"`
	Message      string `cbor:"11,keyasint,omitempty"`
	First        uint64 `cbor:"12,keyasint"` // Seq of its first record
	Records      uint64 `cbor:"13,keyasint"` // that are in the log, by the RunSeq of the last one
	Allowed      int64  `cbor:"14,keyasint,omitempty"`
	Denied       int64  `cbor:"15,keyasint,omitempty"`
}
