"""What people run: commands, report, exports, service, models on disk, Spark, experiments of the papers."""
