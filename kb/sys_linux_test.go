package kb

import "testing"

// Magic numbers of network file systems are known, those of local ones are not taken for one.
func TestNetworkFileSystems(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "NFS", 0xFF534D42: "CIFS", 0x01021997: "9P", 0xEF53: "",
		0x01021994: "", 0x9123683E: "",
	} {
		if got := networkName(magic); got != want {
			t.Errorf("%#x is %q, want %q", magic, got, want)
		}
	}
	if name, err := networkFileSystem(t.TempDir()); err != nil || name != "" {
		t.Errorf("the test's own directory lies on %q (%v)", name, err)
	}
}
