//go:build unix

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// readyEvery is how often a starting component is asked whether it is ready.
	readyEvery = 50 * time.Millisecond
	// readyWithin is ample on a slow machine that runs several clusters.
	readyWithin = 2 * time.Minute
	// portAttempts bounds how often a component is started again because somebody took its port.
	portAttempts = 5
	// logTail is how much of a log an error carries, in bytes.
	logTail = 4 << 10
)

// component is how one program of the cluster is started.
type component struct {
	name string
	// program is the path of the executable.
	program string
	// ports is how many free ports args needs.
	ports int
	args  func(ports []int) []string
	// ready is asked again and again until it returns nil. It must be sure to talk to this very process: on a port
	// that another cluster took in the meantime, that cluster would answer.
	ready func(ctx context.Context, ports []int) error
}

// process is a running component.
type process struct {
	name    string
	cmd     *exec.Cmd
	logPath string
	// ended is closed when the process is gone.
	ended    chan struct{}
	stopping atomic.Bool
}

// errEnded is returned for a component that ended before it was ready.
var errEnded = errors.New("it ended")

// run starts the component on free ports and waits until it is ready. A port is free only until somebody else takes
// it, so losing that race means another attempt with other ports.
func (c *Cluster) run(ctx context.Context, spec component) (*process, []int, error) {
	for attempt := 1; ; attempt++ {
		ports, err := freePorts(spec.ports)
		if err != nil {
			return nil, nil, fmt.Errorf("finding ports for %s: %w", spec.name, err)
		}
		p, err := c.startProcess(spec, spec.args(ports))
		if err != nil {
			return nil, nil, err
		}
		err = p.waitReady(ctx, func(ctx context.Context) error { return spec.ready(ctx, ports) })
		if err == nil {
			go p.reportEnd(c.options.Log)
			return p, ports, nil
		}
		log := p.tail()
		p.stop(0)
		if attempt < portAttempts && errors.Is(err, errEnded) && strings.Contains(log, "address already in use") {
			fmt.Fprintf(c.options.Log, "Somebody took a port of %s, starting it again\n", spec.name)
			continue
		}
		return nil, nil, fmt.Errorf("starting %s: %w; the end of its log:\n%s", spec.name, err, log)
	}
}

func (c *Cluster) startProcess(spec component, args []string) (*process, error) {
	p := &process{
		name:    spec.name,
		logPath: filepath.Join(c.dir, spec.name+".log"),
		ended:   make(chan struct{}),
	}
	log, err := os.Create(p.logPath)
	if err != nil {
		return nil, fmt.Errorf("making the log of %s: %w", spec.name, err)
	}
	defer log.Close()
	p.cmd = exec.Command(spec.program, args...)
	p.cmd.Dir = c.dir
	// A component must find nothing of the user's: kwok, for one, reads a configuration in the home folder.
	p.cmd.Env = []string{"HOME=" + c.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + c.dir}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := c.group.start(p.cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.name, err)
	}
	go func() {
		// How it ended is in ProcessState.
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// reportEnd says so when the process ends without having been stopped.
func (p *process) reportEnd(log io.Writer) {
	<-p.ended
	if !p.stopping.Load() {
		fmt.Fprintf(log, "%s ended unexpectedly (%s); the end of its log:\n%s\n", p.name, p.cmd.ProcessState, p.tail())
	}
}

// waitReady asks until ready says nil, the process ends, or time is up.
func (p *process) waitReady(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("it was not ready within %s", readyWithin))
	defer cancel()
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%w (%s)", errEnded, p.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("%w, last answer: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// stop asks the process to end and kills it after the grace time. It returns when the process is gone.
func (p *process) stop(grace time.Duration) {
	p.stopping.Store(true)
	if grace > 0 {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.ended:
			return
		case <-timer.C:
		}
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// tail is the end of the process's log.
func (p *process) tail() string {
	data, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	if len(data) > logTail {
		data = data[len(data)-logTail:]
		if _, rest, found := bytes.Cut(data, []byte("\n")); found {
			data = rest
		}
	}
	return string(bytes.TrimSpace(data))
}

// freePorts finds loopback ports that nobody listens on. All of them are held until the last is found, so they
// differ.
func freePorts(count int) ([]int, error) {
	ports, listeners := make([]int, 0, count), make([]net.Listener, 0, count)
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, listener)
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
