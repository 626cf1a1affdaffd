// Command demo runs the operator's main job on a local Kubernetes that it builds and starts itself, and prints what a
// user sees. With KEEP=1 in the environment the cluster stays until Ctrl-C, to look around with kubectl.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gpupool/gpupool-operator/test/cluster"
	"github.com/gpupool/gpupool-operator/test/story"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	begun := time.Now()
	fmt.Println("== A local Kubernetes with 7 simulated nodes, drivers that somebody else installed, and the operator")
	local, err := cluster.Start(ctx, cluster.Options{Log: os.Stdout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Stop()) }()
	stopDrivers, err := story.Fleet(ctx, local)
	if err != nil {
		return err
	}
	defer stopDrivers()
	manager, err := startManager(ctx, local)
	if err != nil {
		return err
	}
	defer manager.stop()

	if err := story.Tell(ctx, local.Config, os.Stdout); err != nil {
		return fmt.Errorf("%w\nThe manager's last words:\n%s", err, manager.lastWords())
	}
	fmt.Printf("\nDone in %.0f s.\n", time.Since(begun).Seconds())
	if os.Getenv("KEEP") != "" {
		fmt.Printf("\nThe cluster stays until Ctrl-C:\n  export KUBECONFIG=%s\n  kubectl get gpupools,workloadprofiles\n",
			local.Kubeconfig())
		<-ctx.Done()
	}
	return nil
}
