// Bench of vt007_saturating_addsub: saturating adder and subtractor.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_result;
    int errortime_result;
    int errors_saturated;
    int errortime_saturated;
    int errors_negative;
    int errortime_negative;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic [7:0] a;
  logic [7:0] b;
  logic       sub;
  wire  [7:0] result_ref;
  wire  [7:0] result_dut;
  wire        saturated_ref;
  wire        saturated_dut;
  wire        negative_ref;
  wire        negative_dut;

  RefModule good1 (
    .a(a),
    .b(b),
    .sub(sub),
    .result(result_ref),
    .saturated(saturated_ref),
    .negative(negative_ref)
  );

  TopModule top_module1 (
    .a(a),
    .b(b),
    .sub(sub),
    .result(result_dut),
    .saturated(saturated_dut),
    .negative(negative_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [7:0] open_result = result_ref ^ result_ref;
  wire        match_result = (result_dut ^ open_result) === (result_ref ^ open_result);
  wire        open_saturated = saturated_ref ^ saturated_ref;
  wire        match_saturated = (saturated_dut ^ open_saturated) === (saturated_ref ^ open_saturated);
  wire        open_negative = negative_ref ^ negative_ref;
  wire        match_negative = (negative_dut ^ open_negative) === (negative_ref ^ open_negative);
  wire        tb_match = match_result && match_saturated && match_negative;

  always @(posedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_result) begin
      if (stats1.errors_result == 0) stats1.errortime_result = $time;
      stats1.errors_result = stats1.errors_result + 1;
    end
    if (!match_saturated) begin
      if (stats1.errors_saturated == 0) stats1.errortime_saturated = $time;
      stats1.errors_saturated = stats1.errors_saturated + 1;
    end
    if (!match_negative) begin
      if (stats1.errors_negative == 0) stats1.errortime_negative = $time;
      stats1.errors_negative = stats1.errors_negative + 1;
    end
  end

  function [7:0] corner(input [2:0] index);
    case (index)
      3'd0: corner = 8'h00;
      3'd1: corner = 8'h01;
      3'd2: corner = 8'h3f;
      3'd3: corner = 8'h40;
      3'd4: corner = 8'h7f;
      3'd5: corner = 8'h80;
      3'd6: corner = 8'h81;
      default: corner = 8'hff;
    endcase
  endfunction

  integer i;
  initial begin
    a <= 8'd0;
    b <= 8'd0;
    sub <= 1'b0;
    for (i = 0; i < 128; i = i + 1) @(negedge clk) begin
      a <= corner(i[2:0]);
      b <= corner(i[5:3]);
      sub <= i[6];
    end
    repeat (400) @(negedge clk) begin
      a <= $random;
      b <= $random;
      sub <= $urandom;
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
    if (stats1.errors_result != 0)
      $display("Hint: Output 'result' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_result, stats1.errortime_result);
    else
      $display("Hint: Output 'result' has no mismatches.");
    if (stats1.errors_saturated != 0)
      $display("Hint: Output 'saturated' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_saturated, stats1.errortime_saturated);
    else
      $display("Hint: Output 'saturated' has no mismatches.");
    if (stats1.errors_negative != 0)
      $display("Hint: Output 'negative' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_negative, stats1.errortime_negative);
    else
      $display("Hint: Output 'negative' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
