// Bench of vt006_barrel_shifter: four-mode barrel shifter.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_out;
    int errortime_out;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic [15:0] data;
  logic [3:0]  amount;
  logic [1:0]  mode;
  wire  [15:0] out_ref;
  wire  [15:0] out_dut;

  RefModule good1 (
    .data(data),
    .amount(amount),
    .mode(mode),
    .out(out_ref)
  );

  TopModule top_module1 (
    .data(data),
    .amount(amount),
    .mode(mode),
    .out(out_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [15:0] open_out = out_ref ^ out_ref;
  wire         match_out = (out_dut ^ open_out) === (out_ref ^ open_out);
  wire         tb_match = match_out;

  always @(posedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_out) begin
      if (stats1.errors_out == 0) stats1.errortime_out = $time;
      stats1.errors_out = stats1.errors_out + 1;
    end
  end

  integer i;
  initial begin
    data <= 16'h8001;
    amount <= 4'd0;
    mode <= 2'd0;
    for (i = 0; i < 64; i = i + 1) @(negedge clk) begin
      data <= 16'h8421;
      {mode, amount} <= i[5:0];
    end
    for (i = 0; i < 64; i = i + 1) @(negedge clk) begin
      data <= 16'h7ffe;
      {mode, amount} <= i[5:0];
    end
    repeat (400) @(negedge clk) begin
      data <= $random;
      amount <= $urandom;
      mode <= $random;
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
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
