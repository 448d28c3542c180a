package kernel

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// The rows of the documentation: why ours does not do as the kernel does.
const (
	ecnOut          = "CE inside"
	defaultDF       = "DF by default"
	inheritDF       = "DF inherited by ARP"
	defaultChecksum = "UDP checksum by default"
	flowLabel       = "IPv6 flow label"
	reservedBits    = "reserved bits"
	ownMAC          = "own source MAC"
	cutIP           = "cut IP headers"
	innerVLAN       = "VLAN tag inside"
	bridgeGroup     = "01:80:c2:00:00:00-0f"
)

// The documentation has a row for each cause of a difference, and no other.
func TestDocumentation(t *testing.T) {
	var want []string
	for _, d := range slices.Concat(sendDifferences, receiveDifferences, outerDifferences, shapeDifferences, gbpDifferences, gpeDifferences,
		reservableDifferences) {
		if !slices.Contains(want, d.rule) {
			want = append(want, d.rule)
		}
	}
	slices.Sort(want)
	for _, c := range []struct{ file, section, row string }{
		{"doc.go", `(?s)# Oracle(.*)# Peer`, `(?m)^//   - (.*?): `},
		{"../../../docs/kernel.md", `(?s)(.*)`, `(?m)^\| ([^|]+?) \|`},
	} {
		text := check.Must(os.ReadFile(c.file))(t)
		section := regexp.MustCompile(c.section).FindStringSubmatch(string(text))
		if section == nil {
			t.Errorf("%s: no section %s", c.file, c.section)
			continue
		}
		var got []string
		for _, m := range regexp.MustCompile(c.row).FindAllStringSubmatch(section[1], -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		check.True(t, slices.Equal(got, want), "%s has the rows\n%q, want\n%q", c.file, got, want)
	}
}
