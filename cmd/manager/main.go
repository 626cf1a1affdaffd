// Command manager runs the GpuPool operator.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gpupool/gpupool-operator/controllers"
)

// version is set by the linker.
var version = "dev"

// leaseName is the Lease that replicas elect their leader by.
const leaseName = "gpupool-operator"

type flags struct {
	leaderElect    bool
	leaseNamespace string
	probeAddress   string
	metricsAddress string
	verbosity      int
	printsVersion  bool
}

func main() {
	if err := run(signals.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	f, err := parse(arguments)
	if err != nil {
		return err
	}
	if f.printsVersion {
		fmt.Println(version)
		return nil
	}
	log := logger(f.verbosity)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	mgr, err := newManager(f)
	if err != nil {
		return err
	}
	if err := controllers.Setup(ctx, mgr, clock.RealClock{}); err != nil {
		return err
	}
	log.Info("Starting", "version", version)
	return mgr.Start(ctx)
}

// parse reads the flags. The kubeconfig flag is the one that controller-runtime registers.
func parse(arguments []string) (flags, error) {
	var f flags
	set := flag.CommandLine
	set.BoolVar(&f.leaderElect, "leader-elect", true,
		"Elect a leader among replicas. Without it a second manager would do everything twice.")
	set.StringVar(&f.leaseNamespace, "leader-election-namespace", "",
		"Namespace of the leader election Lease. Unset is the manager's own namespace in a cluster.")
	set.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081",
		"Address that serves /healthz and /readyz. 0 serves neither.")
	set.StringVar(&f.metricsAddress, "metrics-bind-address", "0",
		"Address that serves metrics of the controllers. 0 serves none.")
	set.IntVar(&f.verbosity, "v", 0, "Log level: 0 tells changes, 4 tells how they came about.")
	set.BoolVar(&f.printsVersion, "version", false, "Print the version and exit.")
	return f, set.Parse(arguments)
}

func newManager(f flags) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := controllers.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         controllers.CacheOptions(),
		Metrics:                       metricsserver.Options{BindAddress: f.metricsAddress},
		HealthProbeBindAddress:        f.probeAddress,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       f.leaseNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, nil
}

// logger writes JSON lines. Level n of logr is -n of slog.
func logger(verbosity int) logr.Logger {
	level := slog.Level(-verbosity)
	return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
