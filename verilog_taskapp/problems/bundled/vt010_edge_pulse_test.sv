// Bench of vt010_edge_pulse: edge detector with selectable edges.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_pulse;
    int errortime_pulse;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       reset;
  logic       in;
  logic [1:0] mode;
  wire        pulse_ref;
  wire        pulse_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .in(in),
    .mode(mode),
    .pulse(pulse_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .in(in),
    .mode(mode),
    .pulse(pulse_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire        open_pulse = pulse_ref ^ pulse_ref;
  wire        match_pulse = (pulse_dut ^ open_pulse) === (pulse_ref ^ open_pulse);
  wire        tb_match = match_pulse;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_pulse) begin
      if (stats1.errors_pulse == 0) stats1.errortime_pulse = $time;
      stats1.errors_pulse = stats1.errors_pulse + 1;
    end
  end

  integer i;
  initial begin
    reset <= 1'b1;
    in <= 1'b1;
    mode <= 2'd3;
    repeat (3) @(posedge clk);
    reset <= 1'b0;
    repeat (3) @(posedge clk);
    // Each mode with a slow and a fast input.
    for (i = 0; i < 48; i = i + 1) @(posedge clk) begin
      mode <= i / 12;
      in <= (i % 12 < 6) ? i[1] : i[0];
    end
    // A change while mode is 0 is not reported later.
    for (i = 0; i < 12; i = i + 1) begin
      @(posedge clk);
      mode <= 2'd0;
      in <= ~in;
      @(posedge clk) mode <= 2'd3;
      @(posedge clk);
    end
    repeat (300) @(posedge clk) begin
      in <= $random;
      if (($urandom & 3) == 0) mode <= $urandom;
      reset <= ($urandom & 15) == 0;
    end
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_pulse != 0)
      $display("Hint: Output 'pulse' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_pulse, stats1.errortime_pulse);
    else
      $display("Hint: Output 'pulse' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
