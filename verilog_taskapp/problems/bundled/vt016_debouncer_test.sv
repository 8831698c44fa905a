// Bench of vt016_debouncer: push-button debouncer.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_out;
    int errortime_out;
    int errors_changed;
    int errortime_changed;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic reset;
  logic in;
  wire  out_ref;
  wire  out_dut;
  wire  changed_ref;
  wire  changed_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .in(in),
    .out(out_ref),
    .changed(changed_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .in(in),
    .out(out_dut),
    .changed(changed_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  open_out = out_ref ^ out_ref;
  wire  match_out = (out_dut ^ open_out) === (out_ref ^ open_out);
  wire  open_changed = changed_ref ^ changed_ref;
  wire  match_changed = (changed_dut ^ open_changed) === (changed_ref ^ open_changed);
  wire  tb_match = match_out && match_changed;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_out) begin
      if (stats1.errors_out == 0) stats1.errortime_out = $time;
      stats1.errors_out = stats1.errors_out + 1;
    end
    if (!match_changed) begin
      if (stats1.errors_changed == 0) stats1.errortime_changed = $time;
      stats1.errors_changed = stats1.errors_changed + 1;
    end
  end

  integer i;
  initial begin
    reset <= 1'b1;
    in <= 1'b1;
    repeat (3) @(posedge clk);
    reset <= 1'b0;
    in <= 1'b0;
    repeat (3) @(posedge clk);
    // Pulses of one to six cycles, of either level.
    for (i = 1; i < 7; i = i + 1) begin
      in <= 1'b1;
      repeat (i) @(posedge clk);
      in <= 1'b0;
      repeat (6) @(posedge clk);
    end
    in <= 1'b1;
    repeat (8) @(posedge clk);
    for (i = 1; i < 7; i = i + 1) begin
      in <= 1'b0;
      repeat (i) @(posedge clk);
      in <= 1'b1;
      repeat (6) @(posedge clk);
    end
    // Three, a bounce, three.
    repeat (8) begin
      in <= ~in;
      repeat (3) @(posedge clk);
      in <= ~in;
      @(posedge clk);
      in <= ~in;
      repeat (3) @(posedge clk);
      in <= ~in;
      repeat ($random & 7) @(posedge clk);
    end
    // A reset in the middle of a run, with the input kept high.
    for (i = 0; i < 5; i = i + 1) begin
      in <= 1'b0;
      repeat (5) @(posedge clk);
      in <= 1'b1;
      repeat (i) @(posedge clk);
      reset <= 1'b1;
      @(posedge clk) reset <= 1'b0;
      repeat (6) @(posedge clk);
    end
    repeat (120) begin
      in <= $random;
      repeat ((($random & 3) == 0) ? 3 + ($random & 3) : 1 + ($random & 1)) @(posedge clk);
      reset <= ($urandom & 31) == 0;
    end
    repeat (120) @(posedge clk) begin
      in <= ($urandom % 5) != 0;
      reset <= ($urandom & 31) == 0;
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
    if (stats1.errors_out != 0)
      $display("Hint: Output 'out' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_out, stats1.errortime_out);
    else
      $display("Hint: Output 'out' has no mismatches.");
    if (stats1.errors_changed != 0)
      $display("Hint: Output 'changed' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_changed, stats1.errortime_changed);
    else
      $display("Hint: Output 'changed' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
