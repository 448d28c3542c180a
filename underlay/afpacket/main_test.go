package afpacket

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/underlay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is what the tests ask of every underlay, ported of one that has ports.
type (
	network interface {
		underlaytest.Underlay
		Stats() underlay.Stats
	}
	ported interface {
		network
		Sockets(c underlay.TxConfig) (uint8, error)
	}
	reports = underlaytest.Reports
)

var (
	must     = check.OK
	endpoint = underlaytest.Endpoint
	to       = underlaytest.To
	send     = underlaytest.Send
	read     = underlaytest.Read
	receive  = underlaytest.Receive
	payloads = underlaytest.Payloads
	quiet    = underlaytest.Quiet
	runOf    = underlaytest.RunOf
)
