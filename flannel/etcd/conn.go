package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vxswitch/vxswitch/internal/secret"
)

// A conn is a client of etcd that says why it has no answer.
type conn struct {
	cfg    Config
	client *clientv3.Client

	state  sync.Mutex
	closed bool
	why    string // there was no connection the last time that there was none, "" after a call that had one
}

// again says when to connect again: where the default waits for two minutes in the end, nodes would follow leases late.
var again = backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}

// window is how much may be under way, in bytes: 5,000 leases. With a window of its own choice gRPC measures the connection, with a
// ping for each event of a watch.
const window = 1 << 20

// open checks the settings and makes the client, which ends with ctx.
func (c *conn) open(ctx context.Context, cfg *Config) error {
	if cfg == nil {
		cfg = new(Config)
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	c.cfg = cfg.full()
	if file := c.cfg.PasswordFile; file != "" {
		password, err := secret.Password(file)
		if err != nil {
			return fmt.Errorf("etcd: password: %s: %w", file, err)
		}
		c.cfg.Password = password
	}
	t, err := c.cfg.tls()
	if err != nil {
		return err
	}
	c.client, err = clientv3.New(clientv3.Config{
		Context:              ctx,
		Endpoints:            c.cfg.Endpoints,
		Username:             c.cfg.Username,
		Password:             c.cfg.Password,
		TLS:                  t,
		DialTimeout:          c.cfg.Timeout, // with a Username New asks for a token
		DialKeepAliveTime:    c.cfg.KeepAlive,
		DialKeepAliveTimeout: c.cfg.KeepAlive,
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: c.cfg.Timeout}),
			grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window), grpc.WithChainUnaryInterceptor(c.hear)},
	})
	if err != nil {
		return c.wrap("connect", err)
	}
	return nil
}

// hear notes why there is no connection for a call: etcd's client says no more than that time is up.
func (c *conn) hear(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := call(ctx, method, req, reply, cc, opts...)
	_, why, _ := strings.Cut(status.Convert(err).Message(), "latest balancer error: ")
	why = strings.TrimPrefix(why, "connection error: desc = ")
	if plain, err := strconv.Unquote(why); err == nil {
		why = plain
	}
	c.state.Lock()
	defer c.state.Unlock()
	if err == nil || why != "" { // else it may be one that nobody has tried to connect for
		c.why = why
	}
	return err
}

// Close ends all calls. What is in etcd stays.
func (c *conn) Close() error {
	c.state.Lock()
	closed := c.closed
	c.closed = true
	c.state.Unlock()
	if closed {
		return nil
	}
	if err := c.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// wrap says which call has failed.
func (c *conn) wrap(what string, err error) error {
	c.state.Lock()
	closed, why := c.closed, c.why
	c.state.Unlock()
	if closed {
		err = net.ErrClosed
	} else if errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded {
		if why != "" {
			why = ": " + why
		}
		err = fmt.Errorf("no answer from %s: %w%s", strings.Join(c.cfg.Endpoints, ", "), context.DeadlineExceeded, why)
	}
	return fmt.Errorf("etcd: %s: %w", what, err)
}

// call returns a context for one call.
func (c *conn) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// revoke ends an etcd lease, and the key that has it. It is no error if that fails: the lease ends by itself.
func (c *conn) revoke(ctx context.Context, id clientv3.LeaseID) {
	ctx, cancel := c.call(context.WithoutCancel(ctx))
	defer cancel()
	c.client.Revoke(ctx, id)
}
