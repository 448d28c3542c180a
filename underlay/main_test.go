package underlay

import (
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is what the tests ask of every underlay.
type network interface {
	underlaytest.Underlay
	Stats() Stats
}

// ported is one that has ports.
type ported interface {
	network
	Sockets(c TxConfig) (uint8, error)
	Join(group netip.Addr) error
	Leave(group netip.Addr) error
}

var (
	_ ported  = (*UDP)(nil)
	_ ported  = (*Portable)(nil)
	_ network = (*IP)(nil)
)

type (
	report  = underlaytest.Report
	reports = underlaytest.Reports
)

var (
	must        = check.OK
	endpoint    = underlaytest.Endpoint
	to          = underlaytest.To
	send        = underlaytest.Send
	read        = underlaytest.Read
	receive     = underlaytest.Receive
	receiveFrom = underlaytest.ReceiveFrom
	payloads    = underlaytest.Payloads
	quiet       = underlaytest.Quiet
	pattern     = underlaytest.Pattern
	runOf       = underlaytest.RunOf
)
